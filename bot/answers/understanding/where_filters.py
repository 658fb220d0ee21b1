"""Parses the ``--where FIELD=VALUE`` options into document filters."""

from __future__ import annotations

from collections.abc import Callable

from bot.answers.understanding.channel_documents import DATE_FIELDS, document_day, field_day
from bot.answers.understanding.document_filters import (
    KINDS,
    DaySpan,
    is_of_kind,
    names_kind,
    read_days,
    version_parts,
)
from storage.errors import SettingsError
from storage.models import METADATA_FIELDS, DocumentStatus, matches_metadata

# Fields of ``--where``; ``date`` is the document's printed date, else its arrival.
WHERE_FIELDS = (*METADATA_FIELDS, "date", "kind")


def where_filter(field: str, value: str) -> Callable[[DocumentStatus], bool]:
    """Return the predicate of ``FIELD=VALUE``; a field that ends in ``!`` negates it.

    Dates and versions may be ranges, including both ends: ``2023..2024``, ``2023..`` or ``..2024``.

    Raises:
        SettingsError: unknown field or invalid value; the message lists the valid ones.
    """
    name, is_excluded = field.removesuffix("!"), field.endswith("!")
    if name not in WHERE_FIELDS or not value:
        raise SettingsError(
            f"--where {field}={value}: invalid filter, use FIELD=VALUE or FIELD!=VALUE; "
            f"the fields are {', '.join(WHERE_FIELDS)}"
        )
    fits = _FIELD_FILTERS.get(name, _equals)(name, value)
    return lambda document: fits(document) is not is_excluded


def _equals(name: str, value: str) -> Callable[[DocumentStatus], bool]:
    return lambda document: matches_metadata(document.metadata, {name: value})


def _of_kind(name: str, value: str) -> Callable[[DocumentStatus], bool]:
    if not names_kind(value):
        raise SettingsError(f"--where {name}={value}: unknown kind, use one of {', '.join(KINDS)}")
    return lambda document: is_of_kind(document, value)


def _in_days(name: str, value: str) -> Callable[[DocumentStatus], bool]:
    """Return the predicate of a date: in a range, year or month, or exactly as printed."""
    first, dots, last = map(str.strip, value.partition(".."))
    days = [read_days(one) if one else None for one in ((first, last) if dots else (first, first))]
    if (first and not days[0]) or (last and not days[1]) or not (first or last):
        raise SettingsError(
            f"--where {name}={value}: invalid date, use 2023, 2023-05 or 2023-05-01, "
            "or a range: 2023..2024, 2023.. or ..2024"
        )
    span = DaySpan(days[0][0] if days[0] else None, days[1][1] if days[1] else None)

    def fits(document: DocumentStatus) -> bool:
        if name == "date":
            counted = document_day(document.metadata, document.arrived_at)
            return counted is not None and counted.day in span
        return (
            matches_metadata(document.metadata, {name: value})
            or field_day(document.metadata.get(name)) in span
        )

    return fits


def _in_versions(name: str, value: str) -> Callable[[DocumentStatus], bool]:
    first, dots, last = value.partition("..")
    if not dots:
        return _equals(name, value)
    lower, upper = version_parts(first), version_parts(last)
    if not (lower or upper):
        raise SettingsError(f"--where {name}={value}: invalid version range, use 2..3, 2.. or ..3")

    def fits(document: DocumentStatus) -> bool:
        printed = document.metadata.get(name)
        parts = version_parts(printed.value) if printed else []
        return bool(parts) and lower <= parts and (not upper or parts[: len(upper)] <= upper)

    return fits


# Fields that accept more than an exact value.
_FIELD_FILTERS = {
    **dict.fromkeys((*DATE_FIELDS, "date"), _in_days),
    "version": _in_versions,
    "kind": _of_kind,
}
