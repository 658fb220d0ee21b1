"""Rerankers beyond lexical and vector scores: a cross-encoder, a rerank API, a language model."""
