"""Sample data for the tests."""
