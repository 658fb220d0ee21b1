"""Chunking: segments that are never split, and chunks built from them. Pure functions."""
