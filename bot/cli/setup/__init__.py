"""``footnote demo``, ``footnote settings`` and ``footnote manifest``: trying it and setting it up."""
