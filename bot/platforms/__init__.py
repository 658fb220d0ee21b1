"""The chat platforms, a folder each, and the list of them."""
