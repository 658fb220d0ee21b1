"""Of several editions of one procedure in a channel, the newest one in force is to be believed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from itertools import permutations
from uuid import UUID

from storage.analyzer import fold
from storage.models import LivePublication

_Age = tuple[int, ...]


def outdated(publications: Iterable[LivePublication], today: date) -> frozenset[UUID]:
    """The publications whose procedure another one of these documents describes as it is now.

    Editions are told by their SOP id and organisation. Days decide, the effective one before that of the
    last update; where an edition has none, version numbers do, part by part. What is effective only in
    the future gives way to what is in force; what cannot be compared is left alone.
    """
    editions: dict[tuple[str, str], list[LivePublication]] = {}
    for one in publications:
        if sop_id := _said(one, "sop_id"):
            editions.setdefault((_key(sop_id), _key(_said(one, "organisation"))), []).append(one)
    groups = (group for group in editions.values() if len(group) > 1)
    pairs = (pair for group in groups for pair in permutations(group, 2))
    return frozenset(one.id for one, other in pairs if _is_newer(other, one, today))


def _is_newer(other: LivePublication, one: LivePublication, today: date) -> bool:
    """Whether ``other`` replaces ``one``."""
    if other.document_id == one.document_id:
        return False
    is_coming, is_other_coming = _is_coming(one, today), _is_coming(other, today)
    if is_coming != is_other_coming:
        return is_coming
    days = day_of(one), day_of(other)
    if days[0] and days[1]:
        return days[1] > days[0]
    versions = _version(one), _version(other)
    return bool(versions[0] and versions[1] and versions[1] > versions[0])


def _is_coming(one: LivePublication, today: date) -> bool:
    effective = one.metadata.get("effective")
    return effective is not None and effective.day is not None and effective.day > today.isoformat()


def day_of(one: LivePublication) -> date | None:
    """The day it is effective from, else that of its last update; None when it says neither."""
    fields = (one.metadata.get(name) for name in ("effective", "last_updated"))
    return next((date.fromisoformat(field.day) for field in fields if field and field.day), None)


def _version(one: LivePublication) -> _Age:
    """1.10 is newer than 1.9, and 03 is 3."""
    return tuple(int(part) for part in re.findall(r"\d+", _said(one, "version")))


def _said(one: LivePublication, name: str) -> str:
    field = one.metadata.get(name)
    return field.value if field else ""


def _key(text: str) -> str:
    return fold(text).casefold().strip()
