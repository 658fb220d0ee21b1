"""Watching: scans locations, ingests finished files, deletes documents whose files are gone."""
