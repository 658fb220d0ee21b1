"""Blobs and the files of readings."""
