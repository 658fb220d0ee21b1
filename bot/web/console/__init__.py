"""The local console: asking, the folders with their state, feedback; for browsers of this machine alone."""
