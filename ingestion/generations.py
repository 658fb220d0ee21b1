"""Names what makes the readings now: when one of these changes, every content is read again."""

from __future__ import annotations

from typing import Protocol

from ingestion.settings import IngestionSettings
from storage.planning import Generations

PARSER = "mupdf-1"
"""Raise it when ``storage/pdf`` makes other pages or words of the same file."""
CHUNKER = "headings-1"
"""Raise it when ``chunker.py`` cuts other chunks from the same pages."""


class Encoder(Protocol):
    """What of an embedder decides over chunks and vectors."""

    @property
    def id(self) -> str:
        """Changes with the model: vectors of two ids never compare."""

    @property
    def window(self) -> int:
        """Most pieces of a chunk that it looks at."""


def generations_of(settings: IngestionSettings, embedder: Encoder) -> Generations:
    """The readings wanted under these settings."""
    quick = f"{PARSER}+{CHUNKER}/{settings.chunk_tokens}/{embedder.window}"
    return Generations(quick, f"{quick}+{embedder.id}" if settings.stop_at == "full" else None)
