"""The documents of one family, such as two plans or two versions: their names share most of their words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from storage.analyzer import fold
from storage.models import DocumentStatus

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Name:
    """What a document is called, by its title or its file."""

    document: UUID
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameSwap:
    """The words that tell a document from its sibling, and those that the sibling has in their place."""

    document: UUID
    own: tuple[str, ...]
    others: tuple[str, ...]


def names_of(documents: Collection[DocumentStatus]) -> list[Name]:
    """Every name of the documents that answer."""
    live = [document for document in documents if document.state == "live"]
    return [
        Name(document.document, words)
        for document in live
        for name in (document.title, PurePosixPath(document.file).stem)
        if (words := tuple(_WORD.findall(name)))
    ]


def swap_names(text: str, wanted: str, names: Sequence[Name], cited: Collection[UUID]) -> str | None:
    """The text about the sibling that ``wanted`` names, or about the only other one; None when none is meant.

    Args:
        text: a question about one document of a family.
        wanted: how the other one is spoken of: by its own words, or as "the other".
        names: what the channel's documents are called.
        cited: documents that the text was answered from, for a text that names none.
    """
    is_other = re.search(r"\b(?:other|another|andere[nrsm]?|autre|otr[oa])\b", fold(wanted), re.I) is not None
    said, asked = _low(text), _low(wanted)
    pairs = list(_name_swaps([name for name in names if _touches(name, said, cited)], names))
    spoken = [pair for pair in pairs if _low(pair.own) <= said]
    meant = [pair for pair in spoken if is_other or _low(pair.others) <= asked]
    if len({_key(pair) for pair in meant}) == 1:
        return _replaced(text, meant[0])
    behind = {_key(pair): pair for pair in pairs if pair.document in cited}
    if is_other and not spoken and len(behind) == 1:
        (pair,) = behind.values()
        return f"{text.rstrip(' ?.!')}, {' '.join(pair.others)}?"
    return None


def _name_swaps(asked: Sequence[Name], names: Sequence[Name]) -> Iterator[NameSwap]:
    for one in asked:
        for other in names:
            own = tuple(word for word in one.words if fold(word).lower() not in _low(other.words))
            others = tuple(word for word in other.words if fold(word).lower() not in _low(one.words))
            shared = len(one.words) - len(own)
            if own and others and shared >= max(len(own), len(others)):
                yield NameSwap(one.document, own, others)


def _touches(name: Name, said: Collection[str], cited: Collection[UUID]) -> bool:
    return name.document in cited or not _low(name.words).isdisjoint(said)


def _replaced(text: str, exchange: NameSwap) -> str | None:
    """The text with the sibling's words; None when its own do not stand together."""
    own = re.compile(r"\W+".join(map(re.escape, exchange.own)), re.IGNORECASE)
    replaced = own.sub(" ".join(exchange.others), text, count=1)
    return replaced if replaced != text else None


def _key(exchange: NameSwap) -> frozenset[str]:
    return _low(exchange.others)


def _low(text: str | Sequence[str]) -> frozenset[str]:
    words = _WORD.findall(text) if isinstance(text, str) else text
    return frozenset(fold(word).lower() for word in words)
