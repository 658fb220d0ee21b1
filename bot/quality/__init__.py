"""Figures of the answers that were given, and their targets."""
