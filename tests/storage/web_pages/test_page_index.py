"""Index of approved web pages: reads per question and memory limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

import pytest
from fakes.term_embedder import TermEmbedder
from harness.empty_homes import make_sqlite

from storage.embeddings.base import Vectors
from storage.index.live_index import SearchHits
from storage.sql.database import Database
from storage.web_pages.page_index import WebPageIndex
from storage.web_pages.page_store import WebPageStore, WebText, WebTextChunk

URLS = [f"https://example.org/{number}" for number in range(3)]
WORDS = ["landlord", "deposit"]


class CountingStore(WebPageStore):
    """A store that counts the texts, and the texts' vectors, that were read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.texts_read: list[int] = []
        self.vectors_read: list[int] = []

    async def texts(self, hashes: Collection[str]) -> dict[str, WebText]:
        """Count and read texts."""
        self.texts_read.append(len(hashes))
        return await super().texts(hashes)

    async def vectors(self, hashes: Collection[str], space: str) -> dict[str, Vectors]:
        """Count and read vectors."""
        self.vectors_read.append(len(hashes))
        return await super().vectors(hashes, space)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    """Three pages of one chunk each, without vectors."""
    database = await Database.open(make_sqlite(tmp_path))
    store = CountingStore(database)
    await store.approve(URLS)
    for number, url in enumerate(URLS):
        chunk = WebTextChunk(f"The landlord keeps deposit number {number}, and the landlord pays.", 9)
        await store.store_text(url, WebText(f"Page {number}", "", (chunk,)), {})
    yield store
    await database.aclose()


async def find(index: WebPageIndex, store: WebPageStore, vector: Sequence[float] | None = None) -> SearchHits:
    """Search the three pages."""
    return await index.find(1, await store.pages(URLS), WORDS, vector, 8)


async def embed(store: WebPageStore, url: str) -> None:
    """Compute the vectors of a page, as renewal does."""
    (page,) = await store.pages([url])
    text = await store.text(page.sha256 or "")
    assert text is not None
    made = await TermEmbedder("terms").aembed([chunk.text for chunk in text.chunks])
    await store.store_vectors(page.sha256 or "", "terms", made)


async def test_a_text_is_read_once_and_its_vectors_once_computed(store: CountingStore) -> None:
    """Shows that pages without vectors are not read and analysed for each question."""
    index = WebPageIndex(store, "terms")
    first = await find(index, store)
    assert (len(first.words), store.texts_read) == (3, [3])
    await embed(store, URLS[0])
    store.texts_read.clear()
    vector = (await TermEmbedder("terms").aembed(["landlord"]))[0]
    again = await find(index, store, vector)
    assert sum(store.texts_read) == 0
    assert [hit.publication for hit in again.vectors] == [first.words[0].publication]
    assert again.words == first.words
    store.vectors_read.clear()
    await find(index, store, vector)
    assert sum(store.texts_read) == 0
    assert sum(store.vectors_read) == 2  # of the two pages without vectors


async def test_the_cache_is_bounded_and_avoids_rereading(store: CountingStore) -> None:
    """Shows that a question that needs more than the cache holds reads only the rest again."""
    index = WebPageIndex(store, "terms")
    await find(index, store)
    for room, read in ((index.bytes, 0), (index.bytes - 1, 1), (index.bytes // 2, 2), (0, 3)):
        smaller = WebPageIndex(store, "terms", memory_bytes=room)
        await find(smaller, store)
        assert smaller.bytes <= room
        store.texts_read.clear()
        assert len((await find(smaller, store)).words) == 3
        assert sum(store.texts_read) == read


async def test_terms_are_counted_whole_and_at_every_occurrence(store: CountingStore) -> None:
    """Shows that adjacent repetitions count, and a part of a longer term does not."""
    texts = ["deposit deposit deposit", "deposit", "deposits-deposit-box42"]
    for url, text in zip(URLS, texts, strict=True):
        await store.store_text(url, WebText("", "", (WebTextChunk(f"{text} landlord tenant rent", 5),)), {})
    found = await find(WebPageIndex(store, "terms"), store)
    assert found.words[0].text.startswith("deposit deposit deposit")
    assert found.words[0].terms.split()[:3] == ["deposit"] * 3
