"""Reading versions: ids of what shapes a reading; when one changes, all contents are read again."""

from __future__ import annotations

import hashlib

from ingestion.settings import IngestionSettings
from storage.embeddings.base import Embedder
from storage.queues.planner import Generations
from storage.readers.registry import READERS
from storage.text.analyzer import ANALYZER
from storage.text.sentences import SPLITTER

# Bump when ``chunker.py`` makes other chunks, or ``metadata.py`` other fields, of a page.
CHUNKER = "headings-8"

# Bump when ``layout_job.py`` or ``reading_order.py`` makes other blocks of a page, or ``figures.py`` other
# figures.
LAYOUT = "layout-5"


def generations_of(settings: IngestionSettings, embedder: Embedder) -> Generations:
    """Return the reading versions for these settings."""
    quick = f"{READERS.version}+{CHUNKER}/{settings.chunk_tokens}/{embedder.window}"
    quick += "+ocr" if settings.reads_pictures else ""
    terms = f"+{ANALYZER}"
    if settings.stop_at == "quick":
        return Generations(quick + terms, None)
    cut = f"{quick}+{LAYOUT if settings.layout else 'fonts'}+{_vision_id(settings)}"
    more = f"+{SPLITTER}" if settings.sentence_vectors else ""
    more += "+fields" if settings.metadata_model == "missing" else ""
    return Generations(quick + terms, cut + embedder.id + more + terms, cut)


def _vision_id(settings: IngestionSettings) -> str:
    """Return an id of the vision model, or of its absence: a change makes new descriptions."""
    if not (settings.vision_url and settings.vision_model):
        return "blind+"
    return f"sight-{hashlib.sha256(settings.vision_model.encode()).hexdigest()[:8]}+"
