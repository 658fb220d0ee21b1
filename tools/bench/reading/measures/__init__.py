"""Measures of reading accuracy."""
