"""Segments that are never cut, and chunks made of them. Pure functions."""
