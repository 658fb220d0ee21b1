"""How steps are run: ticks, leases, threads, and processes beside the service."""
