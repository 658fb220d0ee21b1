"""Checks of the tests."""
