"""Slack surfaces other than answers: App Home, suggested prompts, agent sessions, link previews."""
