"""Many machines on loopback: bots and workers as processes, and what is asked of them meanwhile."""
