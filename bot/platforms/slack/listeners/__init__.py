"""Slack's listeners: each file registers its own on the Bolt app."""
