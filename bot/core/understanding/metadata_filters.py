"""What a person says of where to look: "in SOP-IT-04", "in the 2024 handbook", "from HR".

Only such words make a filter. A name that merely occurs in a question is a preference (``naming.py``): what
it names may stand in several documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID

from bot.core.models import Question
from storage.documents.catalog import Catalog
from storage.models import DocumentStatus
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


class MetadataFilters:
    """Narrows a question to the documents that a person asked in."""

    def __init__(self, documents: Catalog) -> None:
        self._documents = documents

    async def narrow(self, question: Question) -> Question:
        """The question, kept to the documents it says; as it is when it says none, or none that is there.

        Raises:
            storage.errors.InfrastructureError: the channel's documents are not known just now.
        """
        if not (_FILE.search(question.text) or _PLACE.search(question.text)):
            return question
        known = await self._documents.documents(question.channel.id)
        live = [one for one in known if one.state == "live"]
        allowed = [one for one in live if question.documents is None or one.document in question.documents]
        said = filtered_documents(question.text, allowed)
        return replace(question, documents=said) if said else question


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
