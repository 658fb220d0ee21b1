"""Sentence vectors: prepared off the event loop, rows below their headings."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from harness.ingestion_home import Home

from ingestion.reading.sentence_embedder import SentenceEmbedder
from storage.embeddings.quantized_vectors import quantize
from storage.embeddings.vector_cache import VectorCache
from storage.models import Chunk


class Chunks(list[Chunk]):
    """Chunks that record the threads that iterate over them."""

    def __init__(self, *chunks: Chunk) -> None:
        super().__init__(chunks)
        self.read_on: set[int] = set()

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in super().__iter__():
            self.read_on.add(threading.get_ident())
            yield chunk


def chunk_of(text: str, *sections: tuple[int, tuple[str, ...]]) -> Chunk:
    """Return a chunk of page 1."""
    return Chunk(0, text, len(text.split()), (), (), ((0, 1),), sections)


async def ignore(*_: object) -> None:
    """Do nothing."""


async def test_texts_are_split_off_the_event_loop(home: Home) -> None:
    """Shows that splitting a long document into sentences delays no question."""
    chunks = Chunks(
        chunk_of("Staff get leave. Leave lasts a week."),
        chunk_of("A second passage is here. It has two sentences."),
    )
    embedder = SentenceEmbedder(home.embedder, VectorCache(home.database, of_sentences=True))
    vectors = await embedder.embed(chunks, ignore, ignore)
    assert [len(one.spans) for one in vectors] == [2, 2]
    assert chunks.read_on
    assert threading.get_ident() not in chunks.read_on


async def test_a_row_is_embedded_below_its_heading(home: Home) -> None:
    """Shows two tables of one chunk whose rows differ in their section alone; sentences stay as printed."""
    text = "At home\nHotel  90 EUR\nAbroad\nHotel  90 EUR\n\nAsk for more in writing."
    abroad = text.index("Abroad")
    chunk = chunk_of(text, (0, ("Trips", "At home")), (abroad, ("Trips", "Abroad")))
    embedder = SentenceEmbedder(home.embedder, VectorCache(home.database, of_sentences=True))
    (found,) = await embedder.embed([chunk], ignore, ignore)
    embedded = ("At home\nHotel  90 EUR", "Abroad\nHotel  90 EUR", "Ask for more in writing.")
    wanted = quantize(await home.embedder.aembed(embedded))
    parts = [text[start:end] for start, end in found.spans]
    compared = [number for number, part in enumerate(parts) if part in (embedded[2], "Hotel  90 EUR")]
    assert np.array_equal(found.vectors[compared], wanted)
