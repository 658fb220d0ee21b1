"""Installations of the app: Slack tokens, link keys, ended console sessions, tokens of programs."""
