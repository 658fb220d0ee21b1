"""``footnote keys``: the keys that sign links."""
