"""Checks of a soak round: audit, witness, and evidence."""
