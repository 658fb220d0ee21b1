"""In-memory search over approved pages, by keywords and vectors.

A few domains have hundreds of chunks, not thousands, so all of them are compared. Terms come from the shared
analyzer, scores from the embedded engine's BM25, over the chunks of the opened domains.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from yarl import URL

from storage.embeddings.base import Vectors
from storage.index.base import Hit
from storage.index.embedded.bm25 import score, spaced, term_counts, term_weights
from storage.index.live_index import SearchHits
from storage.models import LivePublication, MetadataField, Rung, WebOrigin
from storage.text.analyzer import index_terms
from storage.web_pages.page_store import WebPage, WebPageStore, WebText

# Memory limit for cached texts with terms and vectors: some 2,000 pages of eight chunks of 200 words.
#
# Texts beyond it are read from SQL again for each question.
MEMORY_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Indexed:
    """A text, prepared for searching."""

    text: WebText
    # Spaced terms of each chunk, which can be counted without splitting.
    terms: Sequence[str]
    # Number of terms per chunk.
    lengths: Sequence[int]
    # Vectors of the chunks; None if not computed yet.
    vectors: Vectors | None
    # Approximate memory use.
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        strings = (*self.terms, *(chunk.text for chunk in self.text.chunks))
        size = sum(map(sys.getsizeof, strings)) + (0 if self.vectors is None else self.vectors.nbytes)
        object.__setattr__(self, "bytes", size)

    @classmethod
    def of(cls, text: WebText, vectors: Vectors | None) -> _Indexed:
        terms = [index_terms(text.title, one.heading_path, one.text) for one in text.chunks]
        lengths = [len(own.split()) for own in terms]
        return cls(text, list(map(spaced, terms)), lengths, None).with_vectors(vectors)

    def with_vectors(self, vectors: Vectors | None) -> _Indexed:
        """Return a copy with vectors, which SQL stores concatenated."""
        shaped = None if vectors is None else vectors.reshape(len(self.terms), -1)
        return replace(self, vectors=shaped)


class _Chunk:
    """A chunk among those compared."""

    def __init__(self, page: LivePublication, indexed: _Indexed, ordinal: int) -> None:
        self.page = page
        self._chunk = indexed.text.chunks[ordinal]
        self.terms = indexed.terms[ordinal]
        self._ordinal = ordinal
        self.length = indexed.lengths[ordinal]

    def hit(self, score: float) -> Hit:
        chunk, page = self._chunk, self._chunk.page or 1
        terms = " ".join(self.terms.split())
        return Hit(self.page.id, self._ordinal, chunk.text, page, page, chunk.heading_path, score, terms)


class WebPageIndex:
    """LRU cache and search index of page texts, loaded when first searched."""

    def __init__(self, store: WebPageStore, space: str, memory_bytes: int = MEMORY_BYTES) -> None:
        """Search in ``space``, the vector space of questions, in which the page renewal embeds the texts.

        ``memory_bytes`` limits the cache.
        """
        self._store = store
        self._memory_bytes = memory_bytes
        self._space = space
        # By hash, least recently used first.
        self._known: dict[str, _Indexed] = {}

    @property
    def bytes(self) -> int:
        """Approximate memory use of the cached texts."""
        return sum(one.bytes for one in self._known.values())

    async def find(
        self,
        channel_id: int,
        pages: Iterable[WebPage],
        terms: Sequence[str],
        vector: Sequence[float] | None,
        limit: int,
    ) -> SearchHits:
        """Return the best ``limit`` chunks of these pages by keywords and, given ``vector``, by vector.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        chunks: list[_Chunk] = []
        compared: list[_Chunk] = []
        matrices: list[Vectors] = []
        answering = [page for page in pages if page.sha256]
        texts = await self._texts([page.sha256 or "" for page in answering])
        for page in answering:
            indexed = texts.get(page.sha256 or "")
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

    async def _texts(self, wanted: Iterable[str]) -> Mapping[str, _Indexed]:
        """Return the texts of these hashes, except those replaced in the meantime.

        Only what is not cached is read; for a text that had no vectors yet, only these.
        """
        wanted = list(dict.fromkeys(wanted))
        found = {sha256: self._known[sha256] for sha256 in wanted if sha256 in self._known}
        bare = [sha256 for sha256, one in found.items() if one.vectors is None]
        for sha256, vectors in (await self._store.vectors(bare, self._space)).items():
            found[sha256] = found[sha256].with_vectors(vectors)
        new = [sha256 for sha256 in wanted if sha256 not in found]
        texts = await self._store.texts(new)
        vectors_of = await self._store.vectors(texts, self._space)
        found |= await asyncio.to_thread(_indexed, texts, vectors_of)
        self._keep(found)
        return found

    def _keep(self, used: Mapping[str, _Indexed]) -> None:
        """Cache these, evicting the least recently used texts above the memory limit."""
        for sha256, one in used.items():
            self._known.pop(sha256, None)
            self._known[sha256] = one
        size = self.bytes
        for sha256 in list(self._known):
            if size <= self._memory_bytes:
                break
            size -= self._known.pop(sha256).bytes

    def _publication(self, channel_id: int, page: WebPage, text: WebText) -> LivePublication:
        """Return a page in the form of a live publication."""
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


def _indexed(texts: Mapping[str, WebText], vectors: Mapping[str, Vectors]) -> dict[str, _Indexed]:
    return {sha256: _Indexed.of(text, vectors.get(sha256)) for sha256, text in texts.items()}


def _by_words(chunks: Sequence[_Chunk], terms: Sequence[str], limit: int) -> list[Hit]:
    """Return the best chunks by the embedded engine's BM25."""
    wanted = dict.fromkeys(terms)
    counts = [term_counts(chunk.terms, wanted) for chunk in chunks]
    holding = Counter(term for own in counts for term, count in zip(wanted, own, strict=True) if count)
    weights = term_weights(terms, len(chunks), holding).values()
    average = sum(chunk.length for chunk in chunks) / len(chunks)
    scores = [score(weights, own, one.length, average) for one, own in zip(chunks, counts, strict=True)]
    best = sorted(filter(scores.__getitem__, range(len(chunks))), key=lambda at: -scores[at])
    return [chunks[at].hit(scores[at]) for at in best[:limit]]


def _by_vector(chunks: Sequence[_Chunk], matrix: Vectors, vector: Sequence[float], limit: int) -> list[Hit]:
    cosines = matrix @ np.asarray(vector, dtype=np.float32)
    best = np.argsort(-cosines, kind="stable")[:limit]
    return [chunks[at].hit(float(cosines[at])) for at in best]
