"""Approved web pages: which are approved, and their fetched text."""
