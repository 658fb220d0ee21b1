"""Which of the values that were found may be said: of the sound ones that with the most weight."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ingestion.read import dates, values
from ingestion.read.labels import IGNORED, NUMBER

MAX_VALUE_CHARS = 120


class MetadataCandidate(NamedTuple):
    """A value where it stands: text[start:end] of page ``page`` (from 0)."""

    name: str
    value: str
    page: int
    start: int
    end: int
    weight: int


def checked(raw: MetadataCandidate, *, is_procedure: bool) -> Iterator[MetadataCandidate]:
    """What of a value may be shown: nothing of a template's leftover, and of a number no version.

    Args:
        raw: what stands behind a label.
        is_procedure: the document says that it is one, so that its number is an SOP's.
    """
    name = "sop_id" if raw.name == NUMBER and is_procedure else raw.name
    if (
        name not in (IGNORED, NUMBER)
        and not values.is_nothing(raw.value)
        and len(raw.value) <= MAX_VALUE_CHARS
    ):
        yield from _CHECKS.get(name, _text)(raw._replace(name=name))


def _text(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if any(char.isalpha() for char in raw.value):
        yield raw


def _date(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if printed := dates.find_date(raw.value):
        yield raw._replace(value=printed.text, end=raw.start + len(printed.text))


def _version(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    if (version := values.find_version(raw.value)) and dates.find_date(raw.value) is None:
        yield _sub_value(raw, version, "version")


def _id(raw: MetadataCandidate) -> Iterator[MetadataCandidate]:
    found = values.find_id(raw.value)
    if found is None or dates.find_date(raw.value) is not None:
        return
    yield raw._replace(value=raw.value[: found.end()], end=raw.start + found.end())
    if version := values.find_version_behind(raw.value, found.end()):
        yield _sub_value(raw, version, "version", name="version")


_CHECKS = {"sop_id": _id, "version": _version, "effective": _date, "last_updated": _date}


def _sub_value(
    raw: MetadataCandidate, found: re.Match[str], group: str, *, name: str | None = None
) -> MetadataCandidate:
    start, end = found.span(group)
    return raw._replace(
        name=name or raw.name, value=found[group], start=raw.start + start, end=raw.start + end
    )


def chosen(found: Iterable[MetadataCandidate]) -> dict[str, MetadataCandidate]:
    """The value of each field with the most weight; none where two have the same."""
    by_name: dict[str, list[MetadataCandidate]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    best_ones = {}
    for name, ones in by_name.items():
        weights: Counter[str] = Counter()
        for one in ones:
            weights[_key(one.value)] += one.weight
        (best, most), *others = weights.most_common()
        if not others or others[0][1] < most:
            best_ones[name] = next(one for one in ones if _key(one.value) == best)
    return best_ones


def _key(value: str) -> str:
    return values.one_kind_of_hyphen(value).casefold()
