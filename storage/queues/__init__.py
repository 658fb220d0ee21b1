"""Work to be done: planner, reading and publication queues, purge, repair."""
