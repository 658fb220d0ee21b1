"""The index: one contract (``base``), two engines, and ``live_index``, which stands before both."""
