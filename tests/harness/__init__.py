"""Harness of the tests."""
