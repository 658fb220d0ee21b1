"""Answers questions: the platform-free core, and Slack, Teams, web and command line around it."""
