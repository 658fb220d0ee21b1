"""``footnote backup`` and ``footnote restore``."""
