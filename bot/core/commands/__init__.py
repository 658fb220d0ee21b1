"""What a chat answers without a search: small talk, help, and questions about the bot and its documents."""
