"""Microsoft Teams: Bot Framework activities in over HTTP, answers out as messages with citations."""
