"""Metadata fields: right, missed, or wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ingestion.extraction.metadata import read_metadata
from storage.pdf.models import PdfText
from tools.bench.reading.labels import FOLDER
from tools.bench.reading.tally import Tally

# File -> field -> printed value.
Printed = Mapping[str, Mapping[str, str]]


def printed_fields() -> Printed:
    """Return the labelled fields."""
    labels: Printed = json.loads((FOLDER / "metadata.json").read_text(encoding="utf-8"))
    return labels


def count_fields(labels: Printed, pdfs: Mapping[str, PdfText]) -> Tally:
    """Count ``right``, ``missed`` and ``wrong`` of ``asked`` fields."""
    tally = Tally()
    for name, printed in labels.items():
        found = {field: one.value for field, one in read_metadata(pdfs[name]).items()}
        tally.counts["asked"] += len(printed)
        for field in sorted(printed.keys() | found.keys()):
            outcome = _outcome(printed.get(field), found.get(field))
            tally.counts[outcome] += 1
            if outcome != "right":
                said = f"{found.get(field)!r}, printed {printed.get(field)!r}"
                tally.wrong.append(f"{name}: {field} {outcome}: {said}")
    return tally


def _outcome(printed: str | None, found: str | None) -> str:
    if printed == found:
        return "right"
    return "missed" if found is None else "wrong"
