"""Metadata values that a model names: each is located on a page, as printed, or dropped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ingestion.extraction.metadata import BLOCK_LINES, MetadataCandidate, make_field, valid_candidates
from ingestion.extraction.metadata_patterns import is_procedure
from storage.models import MetadataField, Page

# Fields of a procedure that a model is asked for.
FIELDS = ("sop_id", "version", "department", "effective", "last_updated")

# Pages that print a document's own metadata.
SEARCHED_PAGES = 2


def missing_fields(known: Collection[str], pages: Sequence[Page]) -> tuple[str, ...]:
    """Return the fields that a procedure lacks; none for other documents."""
    head = pages[0].text.splitlines()[:BLOCK_LINES] if pages else ()
    return tuple(name for name in FIELDS if name not in known) if any(map(is_procedure, head)) else ()


def locate_fields(said: Mapping[str, str], pages: Sequence[Page]) -> dict[str, MetadataField]:
    """Return those of the values that the first pages print, and that are valid for their field."""
    found = {name: _locate(name, value, pages[:SEARCHED_PAGES]) for name, value in said.items()}
    return {name: one for name, one in found.items() if one}


def _locate(name: str, value: str, pages: Sequence[Page]) -> MetadataField | None:
    words = r"\s+".join(map(re.escape, value.split()))
    for number, page in enumerate(pages if words else ()):
        for match in re.finditer(rf"(?<!\w){words}(?!\w)", page.text):
            raw = MetadataCandidate(name, " ".join(match[0].split()), number, *match.span(), 1)
            for one in valid_candidates(raw, is_procedure=True):
                if one.name == name:
                    return make_field(pages, one, None)
    return None
