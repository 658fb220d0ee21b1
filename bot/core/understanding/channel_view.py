"""What a channel holds while one question is answered, and which of it the question asks in.

"In SOP-IT-04", "in the 2024 handbook" and "from HR" make a filter. A name that merely occurs in a question is
a preference (``document_names.py``): what it names may be in several documents.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.models import Language, Question
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError
from storage.models import Channel, DocumentStatus
from storage.text.analyzer import analyze, fold

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
        counts = Counter(filter(None, map(_language, documents)))
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


def _language(document: DocumentStatus) -> Language | None:
    """What a document is in, if replies can be written in it."""
    found = document.metadata.get("language")
    return _LANGUAGES.get(found.value) if found else None


def filtered_documents(text: str, documents: Sequence[DocumentStatus]) -> frozenset[UUID]:
    """The documents that a question asks in; none when it names no place, or all of them."""
    said = _by_file(text, documents) or _by_id_or_department(text, documents) or _by_name(text, documents)
    return frozenset(one.document for one in said) if len(said) < len(documents) else frozenset()


def _by_file(text: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    names = {name.casefold() for name in _FILE.findall(text)}
    return [one for one in documents if PurePosixPath(one.file).name.casefold() in names]


def _by_id_or_department(text: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """By an SOP id or a department, whole, right behind a word such as "in" or "from"."""
    places = [fold(match["name"]).casefold() for match in _PLACE.finditer(text)]
    return [one for one in documents if any(_is_said(one, place) for place in places)]


def _is_said(document: DocumentStatus, place: str) -> bool:
    fields = (document.metadata.get(name) for name in ("sop_id", "department"))
    values = [fold(field.value).casefold() for field in fields if field]
    values += [_initials(value) for value in values if " " in value]
    return any(re.match(rf"{re.escape(value)}(?![\w-])", place) for value in values)


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split())


def _by_name(text: str, documents: Sequence[DocumentStatus]) -> list[DocumentStatus]:
    """By a name that ends in a word for a document and is found whole in a document's own names."""
    names = [frozenset(analyze(match["name"])) for match in _NAMED.finditer(text)]
    return [one for one in documents if any(name <= _identity(one) for name in names)]


def _identity(document: DocumentStatus) -> frozenset[str]:
    """All terms that a document is called by: title, file, metadata, the years of its dates."""
    values = [one.day or one.value for one in document.metadata.values()]
    file = re.sub(r"[_\W]+", " ", PurePosixPath(document.file).stem)
    years = re.findall(r"\b(?:19|20)\d\d\b", " ".join(values))
    return frozenset(analyze(" ".join((document.title or "", file, *values, *years))))
