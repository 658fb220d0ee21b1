"""Samples of the tests."""
