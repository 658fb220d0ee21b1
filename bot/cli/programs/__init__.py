"""Commands for programs: their tokens."""
