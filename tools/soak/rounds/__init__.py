"""A round of kills on one pair of engine and database: the world, its changes, and the audit."""
