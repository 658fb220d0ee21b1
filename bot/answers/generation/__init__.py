"""Writes the answer: a model's sentences or the best quotes; abstains if neither answers."""
