"""Weaviate index: collection, queries, and the server as a child process."""
