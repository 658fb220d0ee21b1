"""Accuracy of PDF readers: a common form of their findings, and a measure for each part."""
