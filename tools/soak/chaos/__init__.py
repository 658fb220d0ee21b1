"""Chaos test: all kinds of failures at once around a running ``footnote serve``, and their tally."""
