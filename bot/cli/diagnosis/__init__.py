"""``footnote doctor``: whether an installation works, and how it is mended."""
