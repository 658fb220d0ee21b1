"""Bundled ONNX and OpenAI-compatible embedders, cache of vectors."""
