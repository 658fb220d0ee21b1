"""Searches the texts of approved pages, by words and by vectors, as an index searches a channel's documents.

A few domains hold hundreds of chunks and not thousands: all of them are compared, from memory. The terms are
those of the one analyzer, and the score is the engines' BM25, over the chunks of the opened domains.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from yarl import URL

from storage.embeddings.base import Vectors
from storage.index.base import Hit
from storage.index.embedded.bm25 import K1, B
from storage.index.live_index import SearchHits
from storage.models import LivePublication, MetadataField, Rung, WebOrigin
from storage.recent_items import RecentItems
from storage.text.analyzer import index_terms
from storage.web_pages.page_store import WebPage, WebPageStore, WebText

TEXTS_KEPT = 500
"""Texts held in memory with their terms and vectors: some 20 kB each."""


@dataclass(slots=True)
class _Indexed:
    """A text as it is searched."""

    text: WebText
    terms: list[str]
    """Of each chunk, space-separated."""
    vectors: Vectors | None
    """Of the chunks; None while none were made."""

    @classmethod
    def of(cls, text: WebText, vectors: Vectors | None) -> _Indexed:
        terms = [index_terms(text.title, chunk.heading_path, chunk.text) for chunk in text.chunks]
        return cls(text, terms, vectors)


class _Chunk:
    """One chunk among those that are compared."""

    def __init__(self, page: LivePublication, indexed: _Indexed, ordinal: int) -> None:
        self.page = page
        self._chunk = indexed.text.chunks[ordinal]
        self._terms = indexed.terms[ordinal]
        self._ordinal = ordinal

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self._terms.split())

    def hit(self, score: float) -> Hit:
        chunk, page = self._chunk, self._chunk.page or 1
        return Hit(
            self.page.id, self._ordinal, chunk.text, page, page, chunk.heading_path, score, self._terms
        )


class WebPageIndex:
    """The texts that answer, read when they are first searched."""

    def __init__(self, store: WebPageStore, space: str) -> None:
        """``space`` is where the vectors of all questions lie; the renewal made those of the texts."""
        self._store = store
        self._space = space
        self._known: RecentItems[str, _Indexed] = RecentItems(TEXTS_KEPT)

    async def find(
        self,
        channel_id: int,
        pages: Iterable[WebPage],
        terms: Sequence[str],
        vector: Sequence[float] | None,
        limit: int,
    ) -> SearchHits:
        """The best ``limit`` chunks of these pages by words, and by ``vector`` when one is given.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        chunks: list[_Chunk] = []
        compared: list[_Chunk] = []
        matrices: list[Vectors] = []
        for page in pages:
            indexed = await self._indexed(page.sha256) if page.sha256 else None
            if indexed is None:
                continue
            shown = self._publication(channel_id, page, indexed.text)
            own = [_Chunk(shown, indexed, number) for number in range(len(indexed.terms))]
            chunks += own
            if indexed.vectors is not None:
                compared += own
                matrices.append(indexed.vectors)
        if not chunks:
            return SearchHits()
        words = await asyncio.to_thread(_by_words, chunks, terms, limit)
        vectors: list[Hit] = []
        if vector is not None and compared:
            vectors = _by_vector(compared, np.concatenate(matrices), vector, limit)
        found = {hit.publication for hit in (*words, *vectors)}
        return SearchHits(
            words,
            vectors,
            {one.page.id: one.page for one in chunks if one.page.id in found},
            frozenset(found - {one.page.id for one in compared}),
        )

    async def _indexed(self, sha256: str) -> _Indexed | None:
        """A text with its terms and vectors; None where another text took its place just now."""
        known = self._known.get(sha256)
        if known is None or known.vectors is None:
            found = await self._store.searched_text(sha256, self._space)
            if found is None:
                return None
            known = await asyncio.to_thread(_Indexed.of, *found)
        self._known[sha256] = known
        return known

    def _publication(self, channel_id: int, page: WebPage, text: WebText) -> LivePublication:
        """A page as the document it is to the search."""
        id_ = uuid5(NAMESPACE_URL, f"{page.sha256} {page.url}")
        host = URL(page.url).host or ""
        day = MetadataField("last_updated", text.day, None, (), text.day)
        return LivePublication(
            id=id_,
            channel_id=channel_id,
            document_id=uuid5(NAMESPACE_URL, page.url),
            version_id=0,
            reading_id=id_,
            sha256=page.sha256 or "",
            rung=Rung.FULL,
            file=page.url,
            title=text.title or URL(page.url).name or host,
            pages=1,
            chunks=len(text.chunks),
            space=self._space,
            metadata={"last_updated": day} if text.day else {},
            web=WebOrigin(
                host,
                page.fetched_at,
                tuple(chunk.anchor for chunk in text.chunks),
                is_pdf=any(chunk.page for chunk in text.chunks),
            ),
        )


def _by_words(chunks: Sequence[_Chunk], terms: Sequence[str], limit: int) -> list[Hit]:
    """BM25, as ``storage/index/embedded/bm25.py`` has it."""
    asked = Counter(terms)
    holding = {term: sum(term in chunk.counts for chunk in chunks) for term in asked}
    weights = {
        term: repeated * math.log(1 + (len(chunks) - holding[term] + 0.5) / (holding[term] + 0.5))
        for term, repeated in asked.items()
    }
    average = sum(chunk.counts.total() for chunk in chunks) / len(chunks)
    scored = []
    for chunk in chunks:
        slope = K1 * (1 - B + B * chunk.counts.total() / average)
        counts = ((weight, chunk.counts[term]) for term, weight in weights.items())
        score = sum(weight * count / (count + slope) for weight, count in counts)
        if score > 0:
            scored.append(chunk.hit(score))
    return sorted(scored, key=lambda hit: -hit.score)[:limit]


def _by_vector(chunks: Sequence[_Chunk], matrix: Vectors, vector: Sequence[float], limit: int) -> list[Hit]:
    cosines = matrix @ np.asarray(vector, dtype=np.float32)
    best = np.argsort(-cosines, kind="stable")[:limit]
    return [chunks[at].hit(float(cosines[at])) for at in best]
