"""Approved web pages: fetched safely, read in a limited child, cut like documents and kept warm."""
