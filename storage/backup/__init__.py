"""Backups of a home: an engine-neutral dump of its tables, its files by content, and a manifest."""
