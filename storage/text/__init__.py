"""Analyzer, sentences, token counts, word boxes."""
