"""Finds words in the text of one document, page by page, and lists its headings.

Only what reading kept is looked through: no PDF is opened. A query is found as it is written, in any case,
with or without accents and across line ends; else the pages that hold all of its words are.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from uuid import UUID

from bot.web.viewer.fair_turns import FairTurns
from storage.queues.reading_repair import RepairingReadings
from storage.recent_items import RecentItems
from storage.text.analyzer import fold

MAX_QUERY_CHARS = 200
# Pages that are listed with what stands around a hit; all are counted, and lead to one another.
MAX_LISTED_PAGES = 50
# Of a listed page.
MAX_SNIPPETS = 3
# Before a hit, and after it.
SNIPPET_CHARS = 70
MAX_HEADINGS = 1000
# Searches, and outlines, that are held in memory: each reads the texts of a whole document.
REMEMBERED = 64

_SPACES = re.compile(r"\s+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Wording:
    """What is looked for, as it may stand in a text."""

    # Each has to stand there, folded.
    patterns: tuple[re.Pattern[str], ...]

    def count(self, folded: str) -> int:
        """How many places of a folded text it has; 0 unless each pattern stands there."""
        counts = [sum(1 for _ in pattern.finditer(folded)) for pattern in self.patterns]
        return sum(counts) if all(counts) else 0

    def spans(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of each of these places, in order."""
        folded, origins = _folded(text), _origins(text)
        found = [match.span() for pattern in self.patterns for match in pattern.finditer(folded)]
        is_whole = all(pattern.search(folded) for pattern in self.patterns)
        return sorted((origins[start], origins[end - 1] + 1) for start, end in found) if is_whole else []


@dataclass(frozen=True, slots=True)
class Snippet:
    """A place of a page with what stands around it."""

    before: str
    hit: str
    after: str


@dataclass(frozen=True, slots=True)
class PageHits:
    """What a page has of a query."""

    page: int
    count: int
    # Of its first places.
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Where a document says what was looked for."""

    query: str
    # It stands there as it is written; else all of its words do.
    is_verbatim: bool
    wording: Wording
    # Page -> places on it, in the order of the pages; pages without one are left out.
    counts: Mapping[int, int]
    listed: tuple[PageHits, ...]

    @property
    def places(self) -> int:
        return sum(self.counts.values())

    def page_before(self, page: int) -> int | None:
        """Return the nearest earlier page with a place."""
        return max((one for one in self.counts if one < page), default=None)

    def page_after(self, page: int) -> int | None:
        """Return the nearest later page with a place."""
        return min((one for one in self.counts if one > page), default=None)


@dataclass(frozen=True, slots=True)
class OutlineHeading:
    """A heading of a document."""

    text: str
    # 0: at the top.
    level: int
    page: int


class DocumentSearch:
    """Searches readings, one at a time: however many people search, they delay no answer by more than one.

    Holders take turns; what was found before waits for nobody. ``holder`` is whoever asks.
    """

    def __init__(self, readings: RepairingReadings) -> None:
        self._readings = readings
        self._turns = FairTurns(1)
        self._results: RecentItems[tuple[UUID, str], SearchResult] = RecentItems(REMEMBERED)
        self._outlines: RecentItems[UUID, Sequence[OutlineHeading]] = RecentItems(REMEMBERED)

    async def find(self, reading_id: UUID, query: str, *, holder: Hashable) -> SearchResult:
        """Where the document says it.

        Raises:
            storage.errors.InfrastructureError: what was read of it is not there just now.
        """
        key = reading_id, query
        if (result := self._results.get(key)) is None:
            async with self._turns.turn(holder):
                if (result := self._results.get(key)) is None:
                    texts = await self._readings.page_texts(reading_id)
                    result = await asyncio.to_thread(search_pages, texts, query)
        self._results[key] = result
        return result

    async def outline(self, reading_id: UUID, *, holder: Hashable) -> Sequence[OutlineHeading]:
        """Return the document's headings, where each of them begins; raises as ``find``."""
        if (outline := self._outlines.get(reading_id)) is None:
            async with self._turns.turn(holder):
                if (outline := self._outlines.get(reading_id)) is None:
                    outline = outline_of(await self._readings.sections(reading_id))
        self._outlines[reading_id] = outline
        return outline


def search_pages(texts: Sequence[str], query: str) -> SearchResult:
    """Look for a query in the texts of all pages, in order."""
    counts: dict[int, int] = {}
    folded, wordings = [_folded(text) for text in texts], _wordings(_folded(query).split())
    for wording in wordings:
        counts = {page: count for page, text in enumerate(folded, 1) if (count := wording.count(text))}
        if counts:
            break
    listed = [_page_hits(page, count, texts[page - 1], wording) for page, count in _first(counts)]
    return SearchResult(query, wording is wordings[0], wording, counts, tuple(listed))


def outline_of(sections: Iterable[tuple[Sequence[str], int]]) -> tuple[OutlineHeading, ...]:
    """Outline of the sections (headings, page where it begins): each heading where it comes up."""
    found, before = list[OutlineHeading](), tuple[str, ...]()
    for headings, page in sections:
        path = tuple(headings)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, path, strict=False)))
        found += [OutlineHeading(text, level, page) for level, text in enumerate(path) if level >= common]
        before = path
    return tuple(found)


def _wordings(words: Sequence[str]) -> list[Wording]:
    """As it is written, then its words in any order."""
    escaped = [re.escape(word) for word in words] or [r"(?!)"]
    singly = [Wording(tuple(map(re.compile, dict.fromkeys(escaped))))] if len(escaped) > 1 else []
    return [Wording((re.compile(r"\s+".join(escaped)),)), *singly]


def _first(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    return list(counts.items())[:MAX_LISTED_PAGES]


def _page_hits(page: int, count: int, text: str, wording: Wording) -> PageHits:
    return PageHits(page, count, tuple(_snippets(text, wording.spans(text)[:MAX_SNIPPETS])))


def _snippets(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Snippet]:
    """Cut between words."""
    for start, end in spans:
        first, last = max(0, start - SNIPPET_CHARS), min(len(text), end + SNIPPET_CHARS)
        before, after = text[first:start], text[end:last]
        if first:
            before = "…" + (before.partition(" ")[2] if " " in before else before)
        if last < len(text):
            after = (after.rpartition(" ")[0] if " " in after else after) + "…"
        yield Snippet(*(_SPACES.sub(" ", part) for part in (before, text[start:end], after)))


@lru_cache(maxsize=4096)
def _folded_char(char: str) -> str:
    return fold(char).casefold()


def _folded(text: str) -> str:
    return _NOT_ASCII.sub(lambda char: _folded_char(char[0]), text).lower()


def _origins(text: str) -> Sequence[int]:
    """Of each character of the folded text the place of the one that it was made of."""
    if text.isascii():
        return range(len(text))
    return [place for place, char in enumerate(text) for _ in _folded_char(char)]
