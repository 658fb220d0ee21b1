"""Chat models behind one OpenAI-compatible endpoint."""
