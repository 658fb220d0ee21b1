"""Finds a citation's quote in another version of its document: by text, else by section, else page 1."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from bot.answers.verification.claims import find_spans, reduce_text
from storage.errors import InfrastructureError
from storage.lru_cache import LRUCache
from storage.models import Box, Chunk, CitedPlace
from storage.queues.reading_repair import SelfHealingReadings
from storage.text.word_boxes import bounding_boxes, main_page

# Cached places: finding one means reading a whole document.
REMEMBERED = 500
# Prefilter: a chunk without the prefix of any of a quote's longest words is not compared.
PROBES, PROBE_CHARS = 3, 6

_PARTS = re.compile(r" … |\n+")
_WORD = re.compile(r"[^\W_]+")
_NUMBERING = re.compile(r"^[\d.]+\s+")


class FoundBy(StrEnum):
    """Method by which a place was found."""

    # The same words occur there.
    TEXT = "text"
    # Its section begins there; its words do not occur in the document.
    SECTION = "section"
    # Fallback to page 1.
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a quote in another version of its document."""

    page: int
    found_by: FoundBy
    # Bounding boxes of the words on the page.
    boxes: tuple[Box, ...] = ()


FIRST_PAGE = Place(1, FoundBy.NOTHING)


class PassageLocator:
    """Locates quotes in the chunks of readings."""

    def __init__(self, readings: SelfHealingReadings) -> None:
        self._readings = readings
        self._places: LRUCache[tuple[int, int, str, UUID], Place] = LRUCache(REMEMBERED)

    async def locate(
        self, shown: CitedPlace, newer: UUID, *, own: UUID | None = None, section: Sequence[str] = ()
    ) -> Place:
        """Locate in the reading ``newer`` what was shown of another version.

        Args:
            own: reading of the version that was shown, to look up the section.
            section: headings above the quote, if known.

        Raises:
            storage.errors.InfrastructureError: the reading of the other version is unavailable.
        """
        key = (shown.version_id, shown.page, shown.quote, newer)
        if (place := self._places.get(key)) is None:
            chunks = await self._readings.chunks(newer)
            place = await asyncio.to_thread(_by_text, shown.quote, chunks)
            if place is None:
                place = _by_section(section or await self._section(shown, own), chunks) or FIRST_PAGE
        self._places[key] = place
        return place

    async def _section(self, shown: CitedPlace, own: UUID | None) -> Sequence[str]:
        if own is None or not shown.quote:
            return ()
        with suppress(InfrastructureError, LookupError):
            chunks = await self._readings.chunks(own)
            near = [one for one in chunks if one.first_page <= shown.page <= one.last_page]
            found = await asyncio.to_thread(_chunk_of, shown.quote, near)
            spans = [find_spans(part, found.text)[0] for part in _parts(shown.quote)] if found else []
            return found.section_at(spans[-1][1] - 1) if found else ()
        return ()


def relocate(shown: CitedPlace, version_id: int, place: Place) -> CitedPlace:
    """Return what to cite at a place of another version; without the quote if its words are not there."""
    quote = shown.quote if place.found_by is FoundBy.TEXT else ""
    return CitedPlace(version_id, place.page, quote, place.boxes, shown.number, shown.origin)


def _by_text(quote: str, chunks: Sequence[Chunk]) -> Place | None:
    """Return the place of the first chunk that contains all parts of a quote; its page is the last part's."""
    if (chunk := _chunk_of(quote, chunks)) is None:
        return None
    spans = [find_spans(part, chunk.text)[0] for part in _parts(quote)]
    start, end = spans[-1]
    page = chunk.page_at(start)
    if any(bounding_boxes(chunk.words, start, end)):
        page = main_page(chunk.words, start, end)
    boxes = [box for span in spans for box in bounding_boxes(chunk.words, *span).get(page, ())]
    return Place(page, FoundBy.TEXT, tuple(boxes))


def _chunk_of(quote: str, chunks: Sequence[Chunk]) -> Chunk | None:
    parts = _parts(quote)
    words = sorted(_WORD.findall(quote.casefold()), key=len)[-PROBES:]
    beginnings = [word[:PROBE_CHARS] for word in words]
    for chunk in chunks if parts else ():
        text = chunk.text.casefold()
        if any(one in text for one in beginnings) and all(find_spans(part, chunk.text) for part in parts):
            return chunk
    return None


def _parts(quote: str) -> list[str]:
    """Split a quote into parts that follow each other in the document, e.g. an item and its lead-in."""
    return [part for part in _PARTS.split(quote) if _WORD.search(part)]


def _by_section(section: Sequence[str], chunks: Sequence[Chunk]) -> Place | None:
    """Return the place of the same headings, else of the same last heading, ignoring numbering."""
    wanted = [_heading(one) for one in section]
    if not wanted or not wanted[-1]:
        return None
    found = [
        (chunk.page_at(start), [_heading(one) for one in path])
        for chunk in chunks
        for start, path in chunk.sections
    ]
    same = (page for page, path in found if path == wanted)
    alike = (page for page, path in found if wanted[-1] in path)
    page = next(same, None) or next(alike, None)
    return Place(page, FoundBy.SECTION) if page else None


def _heading(text: str) -> str:
    return reduce_text(_NUMBERING.sub("", text.strip())).text
