"""Makes readings of contents: pages, chunks and vectors."""
