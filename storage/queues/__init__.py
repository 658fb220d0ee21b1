"""Background work: planner, reading and publication queues, purge, reconciliation, repair."""
