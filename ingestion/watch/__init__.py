"""Scans the watched places, takes in finished files, and deletes documents whose files are gone."""
