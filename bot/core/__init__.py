"""Shared by every room of the bot: models of questions and answers, ports, errors and wording."""
