"""``footnote audit`` and ``footnote links``."""
