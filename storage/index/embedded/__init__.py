"""The index in one SQLite file per channel: FTS5 and exact vectors in numpy."""
