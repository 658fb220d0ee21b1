"""Metadata, dates and figures of a document. Pure functions."""
