"""Background jobs: scheduler, worker with leases, threads, side processes."""
