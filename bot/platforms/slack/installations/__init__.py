"""Multi-workspace Slack app: OAuth installation, encrypted tokens, token rotation, uninstallation."""
