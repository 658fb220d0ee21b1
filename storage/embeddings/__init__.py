"""Embedders (bundled ONNX, OpenAI-compatible endpoints) and the vector cache."""
