"""Stub: a chat platform in one folder, whose rooms are read and written over HTTP."""
