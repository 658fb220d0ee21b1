"""Sentence vectors are prepared off the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from harness.ingestion_home import Home

from ingestion.reading.sentence_embedder import SentenceEmbedder
from storage.embeddings.vector_cache import VectorCache


class Texts(list[str]):
    """Texts that record the threads that iterate over them."""

    def __init__(self, *texts: str) -> None:
        super().__init__(texts)
        self.read_on: set[int] = set()

    def __iter__(self) -> Iterator[str]:
        for text in super().__iter__():
            self.read_on.add(threading.get_ident())
            yield text


async def ignore() -> None:
    """Do nothing."""


async def test_texts_are_split_off_the_event_loop(home: Home) -> None:
    """Shows that splitting a long document into sentences delays no question."""
    texts = Texts("Staff get leave. Leave lasts a week.", "A second passage is here. It has two sentences.")
    embedder = SentenceEmbedder(home.embedder, VectorCache(home.database, of_sentences=True))
    vectors = await embedder.embed(texts, ignore)
    assert [len(one.spans) for one in vectors] == [2, 2]
    assert texts.read_on
    assert threading.get_ident() not in texts.read_on
