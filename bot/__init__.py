"""Question answering: the platform-independent core, with Slack, Teams, web and CLI around it."""
