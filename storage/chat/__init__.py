"""Chat data: channels, inbox, outbox, citations, thread memory, traces, notifications, glossary."""
