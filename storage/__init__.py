"""Persistence and the code that both sides share: SQL, files, index, embeddings, sandboxed PDF access.

``bot`` and ``ingestion`` import this package; it imports neither of them.
"""
