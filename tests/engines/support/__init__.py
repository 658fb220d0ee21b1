"""Support of the tests."""
