"""The index in Weaviate: collection, queries, and our own child server."""
