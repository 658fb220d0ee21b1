"""Words a follow-up question so that it can be searched for without its thread: pure, and without a model.

The subject of the last question, as it was understood, is put behind the new one; where that means another
document of a family, such as the other of two plans, the names are exchanged in the last question instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.rewriting.follow_up_detection import content_words, opens_contrast
from storage.chat_models import Turn
from storage.models import DocumentStatus
from storage.text.analyzer import analyze, fold

_WORD = re.compile(r"[^\W_]+")

MAX_CARRIED_WORDS = 25
"""Words of an earlier question that a later one takes along."""

_CARRIED = re.compile(r"\(([^()]{3,})\)\W*$")


@dataclass(frozen=True, slots=True)
class Name:
    """What a document is called, by its title or its file."""

    document: UUID
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameSwap:
    """The words that set a document apart from its sibling, and those that the sibling has in their place."""

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
    """The text with the sibling's words; None when its own are not next to each other."""
    own = re.compile(r"\W+".join(map(re.escape, exchange.own)), re.IGNORECASE)
    replaced = own.sub(" ".join(exchange.others), text, count=1)
    return f"{replaced}?" if replaced != text else None


def _key(exchange: NameSwap) -> frozenset[str]:
    return _low(exchange.others)


def _low(text: str | Sequence[str]) -> frozenset[str]:
    words = _WORD.findall(text) if isinstance(text, str) else text
    return frozenset(fold(word).lower() for word in words)


def rewrite_standalone(text: str, last: Turn, names: Sequence[Name] = ()) -> str:
    """The question as it can be understood without the turn before it.

    Args:
        text: a question that leans on it.
        last: the turn before.
        names: what the channel's documents are called, for "the other plan".
    """
    contrast = opens_contrast(text)
    asked = (text[contrast.end() :] if contrast else text).strip(" ¿?!.,;:") or text
    base = last.standalone.strip().rstrip("?!. ")
    sibling = swap_names(base, asked, names, last.documents) if contrast else None
    return sibling or _about(asked, topic(last))


def topic(turn: Turn) -> str:
    """What a turn was about: what its question had carried over, else that question without the asking."""
    carried = _CARRIED.search(turn.standalone) if turn.standalone != turn.question else None
    if carried:
        return carried[1]
    words = turn.standalone.strip().rstrip("?!. ").split()
    places = [place for place, word in enumerate(words) if content_words(word)]
    if not places:
        return " ".join(words)
    return " ".join(words[places[0] : places[-1] + 1][:MAX_CARRIED_WORDS])


def _about(asked: str, subject: str) -> str:
    """A question with its subject behind it, as far as it does not name that itself."""
    known = set(analyze(asked))
    is_known = all(set(analyze(word)) <= known for word in content_words(subject))
    return f"{asked}?" if is_known else f"{asked} ({subject})?"
