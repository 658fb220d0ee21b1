"""Verifies each quote, number, date and negation of an answer against its passage."""
