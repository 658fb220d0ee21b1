"""Full readings wait for what they need, and leave alone whoever asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from ingestion_home import Home
from paper import pdf
from term_embedder import TermEmbedder

from ingestion.read.full_reading import FullReader
from ingestion.read.generations import generations_of
from ingestion.settings import IngestionSettings
from storage.clock import time_passed
from storage.embedding import Vectors
from storage.errors import EmbedderUnavailable
from storage.leases import Leases
from storage.models import Rung
from storage.reading_work import ReadingWork
from storage.tables import ReadingRow
from storage.vector_cache import VectorCache


class TiredEmbedder(TermEmbedder):
    """Wants to be left alone for ten minutes."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Refuses."""
        raise EmbedderUnavailable("the embeddings endpoint has had enough", retry_after=600)


async def at_once() -> None:
    """It is always quiet."""


async def test_what_an_endpoint_tells_one_document_holds_for_all(home: Home) -> None:
    """Shows that Retry-After is kept to, however many documents wait for vectors."""
    home.embedder = TiredEmbedder("tired")
    for number in range(2):
        home.drop(f"hr/{number}.pdf", pdf(f"Leave\nThere are {number} kinds of marzipan leave."))
    await home.ingest(home.inbox / "hr", "hr", Rung.QUICK)
    generations = generations_of(IngestionSettings(), home.embedder)
    work = ReadingWork(home.database, Leases(home.database, "me", 60), generations)
    reader = FullReader(work, home.files, home.embedder, VectorCache(home.database))
    claim = await reader.claim()
    assert claim is not None
    with pytest.raises(EmbedderUnavailable):
        await reader.read(claim, at_once)
    with time_passed(timedelta(seconds=590)):
        assert await reader.claim() is None
    with time_passed(timedelta(seconds=610)):
        assert await reader.claim() is not None


async def test_a_quick_reading_that_was_damaged_is_made_again_before_its_full_one(home: Home) -> None:
    """Shows that a file of the right length and the wrong bytes is noticed by whoever needs it, and heals."""
    home.embedder = embedder = TermEmbedder("terms")
    embedder.left = 0
    home.drop("hr/leave.pdf", pdf("Leave\nThere are seven kinds of marzipan leave."))
    await home.serve()
    await home.until_found("hr", "marzipan", "leave.pdf")
    (quick,) = [row for row in await home.rows(ReadingRow) if row.rung == "quick"]
    chunks = home.files.root / quick.id.hex[:2] / str(quick.id) / "chunks.lines"
    chunks.write_bytes(bytes(chunks.stat().st_size))
    embedder.left = None
    await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL, 120)
    assert [chunk.ordinal for chunk in await home.files.chunks(quick.id)] == [0]
