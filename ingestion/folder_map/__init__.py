"""Folder map: the folders of the inbox, and those listed in `folders.toml`."""
