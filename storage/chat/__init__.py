"""Channels, inbox and outbox, citations, thread memory, traces, notifications, glossary."""
