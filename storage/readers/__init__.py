"""Readers of files: one per format, and the registry that knows their endings and signatures."""
