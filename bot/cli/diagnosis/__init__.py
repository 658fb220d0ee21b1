"""``footnote doctor``."""
