"""Approved web pages: safe fetching, sandboxed reading, chunking, and renewal."""
