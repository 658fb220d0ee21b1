"""Console: asking questions, folders with their state, feedback; for local channels only."""
