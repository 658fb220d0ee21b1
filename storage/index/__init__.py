"""The index: one contract (``base``), two engines, and ``live_index``, which is used in front of both."""
