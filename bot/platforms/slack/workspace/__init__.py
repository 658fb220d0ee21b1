"""Workspace data: app manifest, channel names, memberships, changed channel ids, shared files."""
