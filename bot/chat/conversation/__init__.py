"""Conversation: from inbox to outbox, one reply per message, streamed updates, thread memory."""
