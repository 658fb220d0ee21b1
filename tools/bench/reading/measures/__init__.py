"""Measures of the tests."""
