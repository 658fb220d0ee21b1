"""Chat commands, answered without a search: small talk, help, questions about the bot and its documents."""
