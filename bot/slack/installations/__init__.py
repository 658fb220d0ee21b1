"""One Slack app in many workspaces: how it gets there, its tokens, and how it leaves."""
