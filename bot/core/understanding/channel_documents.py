"""The documents of a channel: what each is called, and which of them a question names.

"In SOP-IT-04", "in the 2024 handbook" and "from HR" make a filter. A name that merely occurs in a question is
a gentle preference: what it names may be in several documents.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.models import Language, Question
from bot.core.understanding.question_terms import weighted_terms
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.models import Channel, DocumentStatus, LivePublication
from storage.text.analyzer import analyze, fold

SPECIFIC = 0.5
"""Share of a name's weight that must occur in the question before it counts as named."""

_FROM = r"(?:in|from|by|per|of|within|under|according\ to|im|in\ der|laut|nach|dans|selon|en|según)"
_KIND = r"""(?:handbook|manual|sop|procedure|protocol|report|document|guide|guidelines?|pdf|file|policy|
    brochure|booklet|library|handbuch|bericht|dokument|manuel|rapport|informe|documento)"""
_NAMED = re.compile(
    rf"\b{_FROM}\s+(?:the\s+|our\s+)?(?P<name>(?:[\w&.'/-]+\s+){{1,6}}?{_KIND})\b", re.IGNORECASE | re.VERBOSE
)
_FILE = re.compile(r"[\w().-]+\.pdf\b", re.IGNORECASE)
_PLACE = re.compile(
    rf"\b{_FROM}\s+(?:the\s+|our\s+)?(?P<name>[\w-]+(?:\s+[\w-]+){{0,3}})", re.IGNORECASE | re.VERBOSE
)

_LANGUAGES = {language.value: language for language in Language}

log = logging.getLogger(__name__)


class ChannelView:
    """The documents of one channel, read from SQL once for a question, when a stage first needs them."""

    def __init__(self, catalog: Catalog, channel: Channel) -> None:
        self._catalog = catalog
        self._channel = channel
        self._documents: Sequence[DocumentStatus] | None = None

    async def documents(self) -> Sequence[DocumentStatus]:
        """All documents that are not deleted, whatever their state, by file name.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        if self._documents is None:
            self._documents = await self._catalog.undeleted(self._channel.id)
        return self._documents

    async def language(self) -> Language | None:
        """What more than half of the documents are in; None, too, where SQL cannot be reached."""
        try:
            documents = await self.documents()
        except InfrastructureError as error:
            log.warning("channel=%d has no known language: %s", self._channel.id, type(error).__name__)
            return None
        found = [one.metadata["language"].value for one in documents if "language" in one.metadata]
        counts = Counter(_LANGUAGES[name] for name in found if name in _LANGUAGES)
        usual, count = counts.most_common(1)[0] if counts else (None, 0)
        return usual if 2 * count > len(documents) else None

    async def narrow(self, question: Question) -> Question:
        """The question, kept to the documents that it names; as it is where it names none that answers.

        Raises:
            storage.errors.InfrastructureError: SQL cannot be reached.
        """
        if not (_FILE.search(question.text) or _PLACE.search(question.text)):
            return question
        live = [one for one in await self.documents() if one.state == "live"]
        allowed = [one for one in live if question.documents is None or one.document in question.documents]
        said = filtered_documents(question.text, allowed)
        return replace(question, documents=said) if said else question


def filtered_documents(text: str, documents: Sequence[DocumentStatus]) -> frozenset[UUID]:
    """The documents that a question asks in; none when it names no place, or all of them."""
    files = {name.casefold() for name in _FILE.findall(text)}
    by_file = [one for one in documents if PurePosixPath(one.file).name.casefold() in files]
    said = by_file or _by_id_or_department(text, documents) or _by_name(text, documents)
    return frozenset(one.document for one in said) if len(said) < len(documents) else frozenset()


def _by_id_or_department(text: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """By an SOP id or a department, whole, right behind a word such as "in" or "from"."""
    places = [fold(match["name"]).casefold() for match in _PLACE.finditer(text)]
    return [one for one in documents if any(_is_said(one, place) for place in places)]


def _is_said(document: DocumentStatus, place: str) -> bool:
    fields = (document.metadata.get(name) for name in ("sop_id", "department"))
    values = [fold(field.value).casefold() for field in fields if field]
    values += ["".join(word[0] for word in value.split()) for value in values if " " in value]
    return any(re.match(rf"{re.escape(value)}(?![\w-])", place) for value in values)


def _by_name(text: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """By a name that ends in a word for a document and is found whole in a document's own names."""
    names = [frozenset(analyze(match["name"])) for match in _NAMED.finditer(text)]
    return [one for one in documents if any(name <= _identity(one) for name in names)]


def documents_named(name: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """The documents of a file name, an SOP id, or of a title and metadata that hold all words of a name."""
    said = fold(name).casefold()
    exact = [one for one in documents if said in _exact_names(one)]
    terms = weighted_terms(name)
    return exact or [one for one in documents if terms and terms <= _identity(one)]


def _exact_names(document: DocumentStatus) -> set[str]:
    file = PurePosixPath(document.file)
    sop_id = document.metadata.get("sop_id")
    names = (document.title, file.name, file.stem, sop_id.value if sop_id else "")
    return {fold(name).casefold() for name in names if name}


def _identity(document: DocumentStatus) -> frozenset[str]:
    """All terms that a document is called by: title, file, metadata, the years of its dates."""
    values = [one.day or one.value for one in document.metadata.values()]
    file = re.sub(r"[_\W]+", " ", PurePosixPath(document.file).stem)
    years = re.findall(r"\b(?:19|20)\d\d\b", " ".join(values))
    return frozenset(analyze(" ".join((document.title or "", file, *values, *years))))


def named_documents(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Publication -> share (0-1) of its title or file name that the question says; 0 when too little.

    A name's words weigh by how few of the ``publications`` share them, so that a name which all of
    them carry names none of them.
    """
    shares = name_shares(terms, publications)
    return {id_: share if share >= SPECIFIC else 0.0 for id_, share in shares.items()}


def name_shares(terms: Collection[str], publications: Collection[LivePublication]) -> dict[UUID, float]:
    """Publication -> share (0-1) of its title or file name that the question says, however little."""
    labels = {publication.id: document_labels(publication) for publication in publications}
    names = {id_: (_terms(title), _terms(file)) for id_, (title, file) in labels.items()}
    weights = _weights(names)
    asked = set(terms)
    return {
        id_: max((_share(name, asked, weights) for name in either), default=0.0)
        for id_, either in names.items()
    }


def document_labels(publication: LivePublication) -> tuple[str, str]:
    """What people may call it: its title, and its file's name in words."""
    return publication.title, re.sub(r"[_\W]+", " ", PurePosixPath(publication.file).stem)


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
    total = math.fsum(weights[term] for term in name)
    return math.fsum(weights[term] for term in name if term in asked) / total if total else 0.0


def edition(publication: LivePublication) -> str:
    """What sets it apart from other documents of its title: ``SOP-IT-04, version 2.1``, as far as it says so.

    A number that the title holds already is not said twice.
    """
    said = {name: one.value for name, one in publication.metadata.items()}
    sop_id = said.get("sop_id", "")
    number = "" if sop_id.casefold() in publication.title.casefold() else sop_id
    version = f"version {said['version']}" if "version" in said else ""
    return ", ".join(filter(None, (number, version)))
