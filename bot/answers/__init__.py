"""From a question to an answer with citations: understand, retrieve, write, verify, cite.

It depends on the core's models and ports, never on a platform, the web or a model's client.
"""
