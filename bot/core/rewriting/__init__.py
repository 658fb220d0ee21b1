"""Turns a follow-up into a question that stands alone."""
