"""The rerankers that need more than words: a cross-encoder, an endpoint, a language model's judgement."""
