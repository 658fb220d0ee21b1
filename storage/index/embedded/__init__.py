"""Embedded index: one SQLite file per channel, with FTS5 and exact vector search in numpy."""
