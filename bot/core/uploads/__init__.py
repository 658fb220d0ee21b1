"""PDFs that people upload in chats: what becomes of them, and how they go again."""
