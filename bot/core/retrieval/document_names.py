"""Which documents a question names, as a gentle preference and never a filter; and what each is called."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from uuid import UUID

from storage.models import LivePublication
from storage.text.analyzer import analyze

SPECIFIC = 0.5
"""Share of a name's weight that must occur in the question before it counts as named."""


def named_documents(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Publication -> share (0-1) of its title or file name that the question says; 0 when too little.

    A name's words weigh by how few of the ``publications`` share them, so that a name which all of
    them carry names none of them.
    """
    shares = name_shares(terms, publications)
    return {id_: share if share >= SPECIFIC else 0.0 for id_, share in shares.items()}


def name_shares(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Publication -> share (0-1) of its title or file name that the question says, however little."""
    names = {publication.id: _names(publication) for publication in publications}
    weights = _weights(names)
    asked = set(terms)
    return {
        id_: max((_share(name, asked, weights) for name in either), default=0.0)
        for id_, either in names.items()
    }


def document_labels(publication: LivePublication) -> tuple[str, str]:
    """What people may call it: its title, and its file's name in words."""
    return publication.title, re.sub(r"[_\W]+", " ", PurePosixPath(publication.file).stem)


def _names(publication: LivePublication) -> tuple[frozenset[str], frozenset[str]]:
    title, file = document_labels(publication)
    return _terms(title), _terms(file)


@lru_cache(maxsize=10_000)
def _terms(name: str) -> frozenset[str]:
    """The terms of a name; memoised, because every question compares all names that it finds."""
    return frozenset(analyze(name))


def _weights(names: Mapping[UUID, Collection[frozenset[str]]]) -> dict[str, float]:
    carriers: dict[str, int] = {}
    for either in names.values():
        for term in frozenset().union(*either):
            carriers[term] = carriers.get(term, 0) + 1
    return {term: math.log(len(names) / count) for term, count in carriers.items()}


def _share(name: frozenset[str], asked: Collection[str], weights: Mapping[str, float]) -> float:
    total = sum(weights[term] for term in name)
    return sum(weights[term] for term in name if term in asked) / total if total else 0.0


def edition(publication: LivePublication) -> str:
    """What sets it apart from other documents of its title: ``SOP-IT-04, version 2.1``, as far as it says so.

    A number that the title holds already is not said twice.
    """
    said = {name: one.value for name, one in publication.metadata.items()}
    sop_id = said.get("sop_id", "")
    number = "" if sop_id.casefold() in publication.title.casefold() else sop_id
    version = f"version {said['version']}" if "version" in said else ""
    return ", ".join(filter(None, (number, version)))
