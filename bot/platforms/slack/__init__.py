"""Slack platform: events arrive over HTTP or Socket Mode, answers leave as Block Kit messages."""
