"""The search index: interface (``base``), two engines, and ``live_index``, the filter in front of both."""
