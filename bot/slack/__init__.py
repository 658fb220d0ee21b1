"""Slack: events in over HTTP or Socket Mode, answers out as Block Kit messages."""
