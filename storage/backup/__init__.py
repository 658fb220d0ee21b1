"""Backups of a home: a neutral dump of its tables, its files by content, and a manifest of both."""
