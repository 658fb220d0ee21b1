"""``footnote erase``."""
