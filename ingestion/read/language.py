"""Tells which language a document is written in.

The method is langid.py's: a naive Bayes classifier over byte n-grams whose weight is the language, not
the domain (Lui and Baldwin, "Cross-domain feature selection for language identification", 2011).
"""

from __future__ import annotations

from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from storage.metadata_models import MetadataField
from storage.pdf.models import ReadPdf

MIN_WORDS = 20
"""Of a page: fewer may be names and numbers only."""
MAX_LETTERS = 4000
MIN_PROBABILITY = 0.95


def read_language(pdf: ReadPdf) -> MetadataField | None:
    """The language of the first page with enough words, as an ISO 639-1 code; None when nothing is sure."""
    page = next((one for one in pdf.pages if len(one.words) >= MIN_WORDS), None)
    if page is None:
        return None
    code, probability = _identifier().classify(page.text[:MAX_LETTERS])
    return MetadataField("language", str(code), page.number, ()) if probability >= MIN_PROBABILITY else None


@cache
def _identifier() -> LanguageIdentifier:
    """Loaded when it is first wanted: that takes 0.8 s and 80 MB."""
    identifier: LanguageIdentifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return identifier
