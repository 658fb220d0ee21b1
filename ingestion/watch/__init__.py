"""Looks at the wanted places, takes what is finished, and lets go of what is surely gone."""
