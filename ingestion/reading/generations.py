"""Names what makes the readings now: when one of these changes, every content is read again."""

from __future__ import annotations

import hashlib

from ingestion.settings import IngestionSettings
from storage.embeddings.base import Embedder
from storage.queues.planner import Generations
from storage.text.analyzer import ANALYZER
from storage.text.sentences import SPLITTER

# Raise it when ``storage/pdf`` makes other pages or words of the same file, or they are kept otherwise.
PARSER = "mupdf-5"
# Raise it when ``chunker.py`` cuts other chunks, or ``metadata.py`` finds other fields, in a page.
CHUNKER = "headings-4"

# Raise it when ``layout_job.py`` or ``reading_order.py`` makes other blocks of a page, or ``figures.py``
# finds other figures on it.
LAYOUT = "layout-4"


def generations_of(settings: IngestionSettings, embedder: Embedder) -> Generations:
    """Return the readings wanted under these settings."""
    quick = f"{PARSER}+{CHUNKER}/{settings.chunk_tokens}/{embedder.window}"
    quick += "+ocr" if settings.reads_pictures else ""
    terms = f"+{ANALYZER}"
    if settings.stop_at == "quick":
        return Generations(quick + terms, None)
    cut = f"{quick}+{LAYOUT if settings.layout else 'fonts'}+{_vision_id(settings)}"
    sentences = f"+{SPLITTER}" if settings.sentence_vectors else ""
    return Generations(quick + terms, cut + embedder.id + sentences + terms, cut)


def _vision_id(settings: IngestionSettings) -> str:
    """Who describes figures: another model describes them anew, and nobody's are not those of one."""
    if not (settings.vision_url and settings.vision_model):
        return "blind+"
    return f"sight-{hashlib.sha256(settings.vision_model.encode()).hexdigest()[:8]}+"
