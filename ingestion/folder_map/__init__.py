"""What admins want to be watched: the folders of the inbox, and those of `folders.toml`."""
