"""Arrivals, identity, catalog, corrections, status and progress of documents."""
