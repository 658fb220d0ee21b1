"""Data inventory, retention, erasure on request."""
