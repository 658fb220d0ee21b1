"""Text analysis: analyzer, sentences, token counts, word boxes."""
