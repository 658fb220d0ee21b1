"""Everything that is kept, and what both sides need to use it.

``bot`` and ``ingestion`` import this package; it imports neither of them.
"""
