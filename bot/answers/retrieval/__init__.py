"""Hybrid search: fusion, ranking, reranking, diversification, evidence within the token budget."""
