"""The index: one contract (contract.py), two engines (embedded.py, weaviate_index.py)."""
