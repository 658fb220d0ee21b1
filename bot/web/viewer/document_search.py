"""Full-text search in one document, page by page, and its outline.

Only the stored reading is searched: no PDF is opened. A query matches verbatim, ignoring case and accents and
across line ends; else pages that contain all of its words match.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from uuid import UUID

from bot.web.viewer.fair_semaphore import FairSemaphore
from storage.lru_cache import LRUCache
from storage.queues.reading_repair import SelfHealingReadings
from storage.text.analyzer import fold

MAX_QUERY_CHARS = 200
# Pages listed with snippets; all pages with hits are counted and linked to one another.
MAX_LISTED_PAGES = 50
# Snippets per listed page.
MAX_SNIPPETS = 3
# Context on each side of a hit.
SNIPPET_CHARS = 70
MAX_HEADINGS = 1000
# LRU size for searches and for outlines: each reads the texts of a whole document.
CACHE_SIZE = 64

_SPACES = re.compile(r"\s+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class QueryPatterns:
    """Patterns of a query."""

    # All of them have to match the folded text.
    patterns: tuple[re.Pattern[str], ...]

    def count(self, folded: str) -> int:
        """Return the number of matches in a folded text, 0 unless every pattern matches."""
        counts = [sum(1 for _ in pattern.finditer(folded)) for pattern in self.patterns]
        return sum(counts) if all(counts) else 0

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of each match, in order; empty unless every pattern matches."""
        folded, origins = _folded(text), _origins(text)
        found = [match.span() for pattern in self.patterns for match in pattern.finditer(folded)]
        is_whole = all(pattern.search(folded) for pattern in self.patterns)
        return sorted((origins[start], origins[end - 1] + 1) for start, end in found) if is_whole else []


@dataclass(frozen=True, slots=True)
class Snippet:
    """Hit with its context."""

    before: str
    hit: str
    after: str


@dataclass(frozen=True, slots=True)
class PageHits:
    """Hits on one page."""

    page: int
    count: int
    # Snippets of the first hits.
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits of a query in a document."""

    query: str
    # True if the query itself matches; else its words do.
    is_verbatim: bool
    wording: QueryPatterns
    # Page -> number of hits, in page order; pages without hits are omitted.
    counts: Mapping[int, int]
    listed: tuple[PageHits, ...]

    @property
    def places(self) -> int:
        """Number of hits in the document."""
        return sum(self.counts.values())

    def page_before(self, page: int) -> int | None:
        """Return the previous page with a hit, None if there is none."""
        return max((one for one in self.counts if one < page), default=None)

    def page_after(self, page: int) -> int | None:
        """Return the next page with a hit, None if there is none."""
        return min((one for one in self.counts if one > page), default=None)


@dataclass(frozen=True, slots=True)
class OutlineHeading:
    """Heading of a document."""

    text: str
    # Heading level; 0 = top level.
    level: int
    page: int


class DocumentSearch:
    """Search in readings, one at a time, so that searches delay an answer by one of them at most.

    Holders take fair turns; cached results need none. ``holder`` identifies the requester.
    """

    def __init__(self, readings: SelfHealingReadings) -> None:
        self._readings = readings
        self._slots = FairSemaphore(1)
        self._results: LRUCache[tuple[UUID, str], SearchResult] = LRUCache(CACHE_SIZE)
        self._outlines: LRUCache[UUID, Sequence[OutlineHeading]] = LRUCache(CACHE_SIZE)

    async def find(self, reading_id: UUID, query: str, *, holder: Hashable) -> SearchResult:
        """Return the hits of a query in a document.

        Raises:
            storage.errors.InfrastructureError: the document's reading is unavailable.
        """
        key = reading_id, query
        if (result := self._results.get(key)) is None:
            async with self._slots.slot(holder):
                if (result := self._results.get(key)) is None:
                    texts = await self._readings.page_texts(reading_id)
                    result = await asyncio.to_thread(search_pages, texts, query)
        self._results[key] = result
        return result

    async def outline(self, reading_id: UUID, *, holder: Hashable) -> Sequence[OutlineHeading]:
        """Return the document's headings with the pages where they begin; raises as ``find``."""
        if (outline := self._outlines.get(reading_id)) is None:
            async with self._slots.slot(holder):
                if (outline := self._outlines.get(reading_id)) is None:
                    outline = outline_of(await self._readings.sections(reading_id))
        self._outlines[reading_id] = outline
        return outline


def search_pages(texts: Sequence[str], query: str) -> SearchResult:
    """Search the texts of all pages, given in order."""
    counts: dict[int, int] = {}
    folded, wordings = [_folded(text) for text in texts], _wordings(_folded(query).split())
    for wording in wordings:
        counts = {page: count for page, text in enumerate(folded, 1) if (count := wording.count(text))}
        if counts:
            break
    listed = []
    for page, count in [*counts.items()][:MAX_LISTED_PAGES]:
        spans = wording.spans(texts[page - 1])[:MAX_SNIPPETS]
        listed.append(PageHits(page, count, tuple(_snippets(texts[page - 1], spans))))
    return SearchResult(query, wording is wordings[0], wording, counts, tuple(listed))


def outline_of(sections: Iterable[tuple[Sequence[str], int]]) -> tuple[OutlineHeading, ...]:
    """Return the outline of sections, each (heading path, first page): each heading where it begins."""
    found, before = list[OutlineHeading](), tuple[str, ...]()
    for headings, page in sections:
        path = tuple(headings)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, path, strict=False)))
        found += [OutlineHeading(text, level, page) for level, text in enumerate(path) if level >= common]
        before = path
    return tuple(found)


def _wordings(words: Sequence[str]) -> list[QueryPatterns]:
    """Return what to search for: the query verbatim, then its words in any order."""
    escaped = [re.escape(word) for word in words] or [r"(?!)"]
    singly = [QueryPatterns(tuple(map(re.compile, dict.fromkeys(escaped))))] if len(escaped) > 1 else []
    return [QueryPatterns((re.compile(r"\s+".join(escaped)),)), *singly]


def _snippets(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Snippet]:
    """Yield a snippet per span, cut between words."""
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
    """Return the source index of each character of the folded text."""
    if text.isascii():
        return range(len(text))
    return [place for place, char in enumerate(text) for _ in _folded_char(char)]
