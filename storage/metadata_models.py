"""What a document says of itself, as it crosses the borders between rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.models import Box

KEY = "metadata"
"""Under which a reading's details hold it."""

FIELDS = (
    "sop_id", "version", "department", "effective", "last_updated", "title", "author", "organisation",
    "document_type", "language",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetadataField:
    """One value of a document's metadata and where it is printed."""

    name: str
    value: str
    """As printed, or as an admin says."""
    page: int | None
    """Counted from 1; None: it is an admin's word."""
    boxes: tuple[Box, ...]
    day: str | None = None
    """Of a date that can be read in one way, as in 2024-03-01."""


def self_description(metadata: Mapping[str, MetadataField]) -> str:
    """A document's metadata in one line: ``SOP-IT-04, version 2.1, IT, effective 2024-01-15``."""
    shown = {name: one.day or one.value for name, one in metadata.items()}
    return ", ".join(phrase.format(shown[name]) for name, phrase in _PHRASES.items() if name in shown)


def kept_of(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """As they are kept under ``KEY``."""
    return {one.name: [one.value, one.page, [list(box) for box in one.boxes], one.day] for one in fields}


def metadata_of(details: Mapping[str, Any], corrected: Mapping[str, str]) -> dict[str, MetadataField]:
    """The fields by name: what a reading's details hold, and over it an admin's words."""
    printed = {
        name: MetadataField(name, value, page, tuple(Box(*box) for box in boxes), day)
        for name, (value, page, boxes, day) in details.get(KEY, {}).items()
    }
    said = {name: MetadataField(name, value, None, ()) for name, value in corrected.items()}
    return {name: one for name, one in (printed | said).items() if one.value}


def says(metadata: Mapping[str, MetadataField], wanted: Mapping[str, str]) -> bool:
    """Whether a document says all of this of itself: each value as printed, in any case, or as a day."""
    return all(name in metadata and _is_value(metadata[name], value) for name, value in wanted.items())


def _is_value(one: MetadataField, value: str) -> bool:
    wanted = " ".join(value.split()).casefold()
    return wanted in (" ".join(one.value.split()).casefold(), one.day)


_PHRASES = {
    "sop_id": "{}",
    "version": "version {}",
    "department": "{}",
    "effective": "effective {}",
    "last_updated": "updated {}",
}
