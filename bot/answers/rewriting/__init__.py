"""Rewrites follow-ups as standalone questions."""
