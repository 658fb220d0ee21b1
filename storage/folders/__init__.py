"""Watched folders, their leases and passwords."""
