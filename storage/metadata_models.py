"""What a document says of itself, as it crosses the borders between rooms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage.models import Box


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
