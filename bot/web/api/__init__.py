"""HTTP API for programs: bearer tokens, JSON."""
