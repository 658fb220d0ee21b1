"""From inbox to outbox: one reply per message, updated live; memory of a thread."""
