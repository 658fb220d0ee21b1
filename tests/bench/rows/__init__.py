"""Rows of the tests."""
