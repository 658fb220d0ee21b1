"""Documents in SQL: arrivals, identity, catalog, corrections, status and progress."""
