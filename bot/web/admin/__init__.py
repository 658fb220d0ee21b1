"""Admin pages of the console: documents, conversations, search debugger, quality and uploads."""
