"""Writes the answer: a model's sentences or the best quotes; abstains when neither answers."""
