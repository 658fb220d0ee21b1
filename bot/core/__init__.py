"""The platform-independent core: turns a question into an answer with citations.

It depends on storage's models, errors and ports, never on Slack, Teams or the web.
"""
