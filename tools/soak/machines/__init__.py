"""Machines on loopback: bots and workers as processes, and continuous questions."""
