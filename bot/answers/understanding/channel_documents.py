"""The documents of a channel: their names, and which of them a question refers to.

"In SOP-IT-04", "in the 2024 handbook" and "from HR" are filters. A name that merely occurs in a question only
boosts the score of its documents, as its subject may be in several.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID

from bot.answers.understanding.answer_types import compares, spans_documents
from bot.answers.understanding.channel_folders import ChannelFolders, folder_name
from bot.answers.understanding.document_filters import (
    MAY_FILTER,
    DocumentFilter,
    read_days,
    read_filters,
    without_filters,
)
from bot.answers.understanding.question_terms import FUNCTION_TERMS, weighted_terms
from bot.core.models import AppliedFilter, Language, Question
from bot.core.wording import reply_words
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.models import Channel, DocumentStatus, LivePublication, MetadataField
from storage.readers.registry import READERS
from storage.text.analyzer import analyze, fold

# Share of a name's weight that must occur in a question for the name to count as mentioned.
MIN_NAME_SHARE = 0.5

# Maximum number of documents that are searched separately for one question.
MAX_COMPARED = 7

# An SOP id up to this length may be a word or a number of the question.
MIN_CODE_CHARS = 4

_FROM = r"(?:in|from|by|per|of|within|under|according\ to|im|in\ der|laut|nach|dans|selon|en|según)"
_KIND = r"""(?:handbook|manual|sop|procedure|protocol|report|document|guide|guidelines?|pdf|file|policy|
    brochure|booklet|library|handbuch|bericht|dokument|manuel|rapport|informe|documento)"""
_NAMED = re.compile(
    rf"\b{_FROM}\s+(?:the\s+|our\s+)?(?P<name>(?:[\w&.'/-]+\s+){{1,6}}?{_KIND})\b", re.IGNORECASE | re.VERBOSE
)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_VERSION = re.compile(r"\bv?\d+(?:\.\d+)*\b", re.IGNORECASE)
_GENERIC = re.compile(r"\b(?:sop|procedure|report|policy|v?\d+)\b")
_PLACE = re.compile(
    rf"\b(?P<how>{_FROM})\s+(?:the\s+|our\s+)?(?P<name>[\w-]+(?:\s+[\w-]+){{0,3}})",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS_IN_KIND = re.compile(rf"\b{_KIND}s?\s+$", re.IGNORECASE | re.VERBOSE)
# Before a department these are possessive ("the head of HR"), so they filter only after a word for documents.
_DOER = {"of", "by", "per"}

# Metadata fields that are dates, in order of precedence.
DATE_FIELDS = ("effective", "last_updated")

_LANGUAGES = {language.value: language for language in Language}

log = logging.getLogger(__name__)


class ChannelView:
    """The documents of one channel, loaded from SQL once per question, on first use."""

    def __init__(self, catalog: Catalog, channel: Channel, folders: ChannelFolders | None = None) -> None:
        self._catalog = catalog
        self._channel = channel
        self._folders = folders
        self._documents: Sequence[DocumentStatus] | None = None

    async def documents(self) -> Sequence[DocumentStatus]:
        """Return all documents that are not deleted, in any state, by file name.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        if self._documents is None:
            self._documents = await self._catalog.active_documents(self._channel.id)
        return self._documents

    async def folder(self) -> str:
        """Return the folder for the channel's documents; only its name if no folders are watched.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        return await self._folders.offer(self._channel) if self._folders else folder_name(self._channel)

    async def language(self) -> Language | None:
        """Return the majority language of the documents; None if there is none, or SQL is down."""
        try:
            documents = await self.documents()
        except InfrastructureError as error:
            log.warning("language detection failed: channel=%d: %s", self._channel.id, type(error).__name__)
            return None
        found = [one.metadata["language"].value for one in documents if "language" in one.metadata]
        counts = Counter(_LANGUAGES[name] for name in found if name in _LANGUAGES)
        usual, count = counts.most_common(1)[0] if counts else (None, 0)
        return usual if 2 * count > len(documents) else None

    async def narrow(self, question: Question) -> Question:
        """Return the question with its document filter; unchanged if it refers to no documents.

        If no document is of the kind or date asked for, all may answer, and the filter says so.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        text = question.text
        filters = read_filters(text) if MAY_FILTER.search(text) else []
        is_spanning = spans_documents(text)
        if not (filters or is_spanning or READERS.names_in(text) or _PLACE.search(text)):
            return question
        live = [one for one in await self.documents() if one.state == "live"]
        allowed = [one for one in live if question.documents is None or one.document in question.documents]
        if is_spanning and not filters:
            compared = compared_documents(text, allowed)
            compared = compared or tuple(one.document for one in _named_in(text, allowed).documents)
            if 1 < len(compared) <= MAX_COMPARED:
                return replace(question, documents=frozenset(compared), compared=compared)
        return _narrowed(question, allowed, filters)


def _narrowed(
    question: Question, allowed: Sequence[DocumentStatus], filters: list[DocumentFilter]
) -> Question:
    words, names = reply_words(question.language), _named_in(question.text, allowed)
    kept = [one for one in allowed if one in names.documents] if names.documents else list(allowed)
    days = {one.document: document_day(one.metadata, one.arrived_at) for one in kept}

    def fits(document: DocumentStatus, *asked: DocumentFilter) -> bool:
        counted = days[document.document]
        return all(one.fits(document, counted and counted.day) for one in asked)

    effective = [one for one in filters if not all(fits(document, one) for document in kept)]
    if not any(fits(document, *effective) for document in kept):
        effective = [one for one in effective if not one.version]  # it may be the version of something else
    fitting = [document for document in kept if fits(document, *effective)]
    conditions = (*names.conditions, *(one.named(words) for one in effective))
    if not conditions:
        return question
    asked = replace(question, text=without_filters(question.text, effective), unfiltered=question.text)
    if not fitting:
        return replace(asked, filter=AppliedFilter(conditions, 0))
    counted = [days[one.document] for one in fitting]
    by_arrival = sum(day is not None and day.is_arrival for day in counted)
    is_dated = any(one.span for one in effective)
    applied = AppliedFilter(conditions, len(fitting), by_arrival if is_dated else 0)
    return replace(
        asked,
        documents=frozenset(one.document for one in fitting),
        filter=applied,
        is_exclusion=question.documents is None
        and not names.conditions
        and all(one.is_excluded for one in effective),
    )


class _Named(NamedTuple):
    # Documents that a question names; empty if it names none, or all of them.
    documents: list[DocumentStatus]
    # The names.
    conditions: tuple[str, ...] = ()


def _named_in(text: str, documents: Sequence[DocumentStatus]) -> _Named:
    for named in (_by_file, _by_id_or_department, _by_name):
        found = named(text, documents)
        if found.documents:
            return found if len(found.documents) < len(documents) else _Named([])
    return _Named([])


def filtered_documents(text: str, documents: Sequence[DocumentStatus]) -> frozenset[UUID]:
    """Return the documents that a question restricts itself to by name; empty if none, or all."""
    return frozenset(one.document for one in _named_in(text, documents).documents)


def _by_file(text: str, documents: Sequence[DocumentStatus]) -> _Named:
    files = {name.casefold() for name in READERS.names_in(text)}
    found = [one for one in documents if PurePosixPath(one.file).name.casefold() in files]
    return _Named(found, tuple(sorted({PurePosixPath(one.file).name for one in found})))


def compared_documents(text: str, documents: Sequence[DocumentStatus]) -> tuple[UUID, ...]:
    """Return the documents that a question names side by side, in that order; empty unless several.

    A document is named by consecutive words with most of the weight of its title or file name. If the same
    words name all of them, as with two versions, the question must be a comparison.
    """
    folded = fold(text).casefold()
    said = [
        (word.start(), frozenset(analyze(word[0].replace("-", ""))))
        for word in _WORD.finditer(_VERSION.sub(_blank, folded))
    ]
    names = {one.document: tuple(map(_name_terms, document_labels(one))) for one in documents}
    weights = _weights({id_: tuple(map(frozenset, either)) for id_, either in names.items()})
    named: dict[UUID, int] = {}
    for one in documents:
        sop_id = one.metadata.get("sop_id")
        places = [folded.find(fold(sop_id.value).casefold())] if sop_id and _is_code(sop_id.value) else []
        places += [_place_of(name, said, weights) for name in names[one.document]]
        if found := [place for place in places if place >= 0]:
            named[one.document] = min(found)
    is_several = len(set(named.values())) > 1 or (len(named) > 1 and compares(text))
    return tuple(sorted(named, key=named.__getitem__)) if is_several and len(named) <= MAX_COMPARED else ()


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_code(sop_id: str) -> bool:
    """True if an SOP id cannot be anything else in a question: SOP-IT-04, but not 7."""
    return any(map(str.isalpha, sop_id)) and any(map(str.isdigit, sop_id)) and len(sop_id) > MIN_CODE_CHARS


def _name_terms(name: str) -> tuple[str, ...]:
    """Return the distinctive terms of a name in order, so without "SOP" and "v02"."""
    terms = analyze(_GENERIC.sub(" ", fold(name).casefold()))
    return tuple(term for term in dict.fromkeys(terms) if term not in FUNCTION_TERMS)


def _place_of(
    name: Sequence[str], said: Sequence[tuple[int, frozenset[str]]], weights: Mapping[str, float]
) -> int:
    """Return the offset of consecutive words that match a name, ignoring function words; -1 if none do.

    More than half of its weight is enough, or half of it including its first word: MilliQ, of MilliQ water.
    """
    whole = frozenset(name)
    begun, held = 0, frozenset[str]()
    for start, terms in said:
        if terms <= FUNCTION_TERMS and held:
            continue
        begun, held = (
            (begun if held else start, held | terms) if terms and terms <= whole else (0, frozenset())
        )
        share = _share(whole, held, weights)
        if share > MIN_NAME_SHARE or (share == MIN_NAME_SHARE and name[0] in held):
            return begun
    return -1


def _by_id_or_department(text: str, documents: Sequence[DocumentStatus]) -> _Named:
    """Match a complete SOP id or department directly after a word such as "in" or "from"."""
    folded = fold(text)
    said = []
    for match in _PLACE.finditer(folded):
        is_kind = match["how"].lower() not in _DOER or _ENDS_IN_KIND.search(folded[: match.start()])
        fields = ("sop_id", "department") if is_kind else ("sop_id",)
        values = [(one, _said_value(one, match["name"].casefold(), fields)) for one in documents]
        said += [(one, value) for one, value in values if value]
    return _Named(
        list({one.document: one for one, _ in said}.values()),
        tuple(dict.fromkeys(value for _, value in said)),
    )


def _said_value(document: DocumentStatus, place: str, fields: Sequence[str]) -> str | None:
    """Return the first of ``fields`` whose value ``place`` begins with, as the document prints it."""
    for field in filter(None, map(document.metadata.get, fields)):
        value = fold(field.value).casefold()
        initials = ["".join(word[0] for word in value.split())] if " " in value else []
        if any(re.match(rf"{re.escape(name)}(?![\w-])", place) for name in (value, *initials)):
            return field.value
    return None


def _by_name(text: str, documents: Sequence[DocumentStatus]) -> _Named:
    """Match a phrase that ends in a word for a document and whose words all occur in a document's names."""
    names = [(match["name"], frozenset(analyze(match["name"]))) for match in _NAMED.finditer(text)]
    said = [(one, named) for one in documents for named, name in names if name <= _identity(one)]
    return _Named(
        list({one.document: one for one, _ in said}.values()),
        tuple(dict.fromkeys(named for _, named in said)),
    )


def documents_by_name(name: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """Return the documents with exactly this name, else those whose names and metadata hold its words."""
    said = fold(name).casefold()
    exact = [one for one in documents if said in _exact_names(one)]
    terms = weighted_terms(name)
    return exact or [one for one in documents if terms and terms <= _identity(one)]


def match_documents(name: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """Return the same, but a word for a document may be absent from its name: "the travel policy"."""
    bare = re.sub(rf"\b{_KIND}s?\b", " ", name, flags=re.IGNORECASE | re.VERBOSE)
    return documents_by_name(name, documents) or (documents_by_name(bare, documents) if bare.strip() else [])


def _exact_names(document: DocumentStatus) -> set[str]:
    file = PurePosixPath(document.file)
    sop_id = document.metadata.get("sop_id")
    names = (document.title, file.name, file.stem, sop_id.value if sop_id else "")
    return {fold(name).casefold() for name in names if name}


def _identity(document: DocumentStatus) -> frozenset[str]:
    """Return all terms that identify a document: of title, file name, metadata, years of its dates."""
    values = [one.day or one.value for one in document.metadata.values()]
    file = re.sub(r"[_\W]+", " ", PurePosixPath(document.file).stem)
    years = re.findall(r"\b(?:19|20)\d\d\b", " ".join(values))
    return frozenset(analyze(" ".join((document.title or "", file, *values, *years))))


def named_documents(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Return, per publication, the share (0-1) of its title or file name in a question; 0 if too small.

    Words are weighted by their IDF among ``publications``: a name that all of them have identifies none.
    """
    shares = name_shares(terms, publications)
    return {id_: share if share >= MIN_NAME_SHARE else 0.0 for id_, share in shares.items()}


def name_shares(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Return, per publication, the share (0-1) of its title or file name in a question."""
    labels = {publication.id: document_labels(publication) for publication in publications}
    names = {id_: (_terms(title), _terms(file)) for id_, (title, file) in labels.items()}
    weights = _weights(names)
    asked = set(terms)
    return {
        id_: max((_share(name, asked, weights) for name in either), default=0.0)
        for id_, either in names.items()
    }


def document_labels(document: LivePublication | DocumentStatus) -> tuple[str, str]:
    """Return the names that people may use: the title, and the file name split into words."""
    return document.title, re.sub(r"[_\W]+", " ", PurePosixPath(document.file).stem)


@lru_cache(maxsize=10_000)
def _terms(name: str) -> frozenset[str]:
    """Return the terms of a name; cached, since every question compares all names that it finds."""
    return frozenset(analyze(name))


def _weights(names: Mapping[UUID, Collection[frozenset[str]]]) -> dict[str, float]:
    carriers = Counter(term for either in names.values() for term in frozenset().union(*either))
    return {term: math.log(len(names) / count) for term, count in carriers.items()}


def _share(name: frozenset[str], asked: Collection[str], weights: Mapping[str, float]) -> float:
    total = math.fsum(weights[term] for term in name)
    return math.fsum(weights[term] for term in name if term in asked) / total if total else 0.0


def edition(publication: LivePublication) -> str:
    """Return what distinguishes documents of the same title: ``SOP-IT-04, version 2.1``.

    An SOP id that the title contains is not repeated.
    """
    said = {name: one.value for name, one in publication.metadata.items()}
    sop_id = said.get("sop_id", "")
    number = "" if sop_id.casefold() in publication.title.casefold() else sop_id
    version = f"version {said['version']}" if "version" in said else ""
    return ", ".join(filter(None, (number, version)))


class DocumentDay(NamedTuple):
    """A document's date; ``is_arrival`` if only its arrival is known."""

    day: date
    is_arrival: bool = False


def document_day(metadata: Mapping[str, MetadataField], arrived_at: datetime | None) -> DocumentDay | None:
    """Return the date of a document; None if it has none and its arrival is unknown.

    An ambiguous printed date, such as 5/10/23, counts as the earlier one.
    """
    if printed := next(filter(None, (field_day(metadata.get(name)) for name in DATE_FIELDS)), None):
        return DocumentDay(printed)
    return DocumentDay(arrived_at.date(), is_arrival=True) if arrived_at else None


def field_day(field: MetadataField | None) -> date | None:
    """Return the earliest day that a metadata field may mean; None if it is no date."""
    if field is None:
        return None
    if field.day:
        return date.fromisoformat(field.day)
    days = read_days(field.value)
    return days[0] if days else None
