"""Fakes and test doubles."""
