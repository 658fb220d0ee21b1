"""Chat platforms of tests."""
