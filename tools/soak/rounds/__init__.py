"""One round of kills on one pair of engine and database: the world, what is done to it, and its audit."""
