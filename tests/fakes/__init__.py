"""Fakes of the tests."""
