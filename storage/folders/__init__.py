"""Watched folders: documents, status, leases and passwords."""
