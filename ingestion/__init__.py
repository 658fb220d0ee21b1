"""Ingestion: keeps the search index in sync with the watched folders."""
