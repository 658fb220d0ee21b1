"""``footnote demo``, ``footnote settings`` and ``footnote manifest``."""
