"""Support modules of the test engines."""
