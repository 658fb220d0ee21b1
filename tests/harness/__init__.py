"""Test harness: processes, homes, clocks, waiting."""
