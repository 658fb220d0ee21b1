"""The platform-free core: how a question becomes an answer with citations.

It sees storage's models, errors and ports, and nothing of Slack, Teams or the web.
"""
