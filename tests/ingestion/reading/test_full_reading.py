"""Full readings wait for engines and respect their rate limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.term_embedder import TermEmbedder
from harness.clocks import advance_clocks
from harness.ingestion_home import Home
from samples.paper import pdf, table_pdf
from samples.pictures import picture_pdf

from ingestion.reading.chunk_jobs import ChunkingClient
from ingestion.reading.full import FullReader, LayoutChunker
from ingestion.reading.generations import generations_of
from ingestion.settings import IngestionSettings
from storage.embeddings.base import Vectors
from storage.embeddings.vector_cache import VectorCache
from storage.errors import EmbedderUnavailable, ReaderKilled
from storage.models import Rung
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_queue import ReadingQueue
from storage.queues.reading_repair import SelfHealingReadings, SentenceVectorStore
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import ReadingRow
from storage.text.sentences import quotables


class TiredEmbedder(TermEmbedder):
    """An embedder that asks for a pause of ten minutes."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Raise EmbedderUnavailable with `retry_after`."""
        raise EmbedderUnavailable("the embeddings endpoint has had enough", retry_after=600)


class Unneeded(ChunkingClient):
    """A chunking client that must not be used."""

    def __init__(self) -> None:
        pass


async def at_once() -> None:
    """Wait for nothing."""


async def test_retry_after_of_one_document_applies_to_all(home: Home) -> None:
    """Shows that Retry-After is respected, however many documents wait for vectors."""
    home.embedder = TiredEmbedder("tired")
    for number in range(2):
        home.drop(f"hr/{number}.pdf", pdf(f"Leave\nThere are {number} kinds of marzipan leave."))
    await home.ingest(home.inbox / "hr", "hr", Rung.QUICK)
    generations = generations_of(IngestionSettings(layout=False), home.embedder)
    work = ReadingQueue(LeasedQueue(home.database, ReadingRow, "me", 60), generations)
    layout_chunker = LayoutChunker(home.blobs, home.pdf, Unneeded(), reads_layout=False, ocr_pages=0)
    reader = FullReader(work, home.files, home.embedder, VectorCache(home.database), layout_chunker)
    claim = await reader.claim()
    assert claim is not None
    with pytest.raises(EmbedderUnavailable):
        await reader.read(claim, at_once)
    with advance_clocks(timedelta(seconds=590)):
        assert await reader.claim() is None
    with advance_clocks(timedelta(seconds=610)):
        assert await reader.claim() is not None


class BrokenViewer:
    """Reads every PDF once, and renders none."""

    def __init__(self, pdf: PdfProcess) -> None:
        self._pdf = pdf
        self._fetched: set[Path] = set()

    async def fetch(self, path: Path) -> bytes:
        """Read the file the first time; raise afterwards."""
        if path in self._fetched:
            raise ReaderKilled("the reader crashed on this file; export the PDF again")
        self._fetched.add(path)
        return await self._pdf.fetch(path)

    async def fetch_layout(self, path: Path, first: int, last: int) -> bytes:
        """Raise ReaderKilled."""
        raise ReaderKilled("the file takes too long")

    async def fetch_ocr(self, path: Path, page: int) -> bytes:
        """Raise ReaderKilled."""
        raise ReaderKilled("the page takes too long")


async def test_a_pdf_without_layout_keeps_its_quick_structure(home: Home) -> None:
    """Shows that the full rung then only adds vectors to the quick reading."""
    home.embedder = TermEmbedder("terms")
    home.drop("hr/leave.pdf", pdf("Leave\nThere are seven kinds of marzipan leave."))
    await home.serve(layout=True, pdf=BrokenViewer(home.pdf))
    await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    quick, full = sorted(await home.rows(ReadingRow), key=lambda row: row.rung == "full")
    assert await home.files.chunks(full.id) == await home.files.chunks(quick.id)
    assert await home.files.vectors(full.id) is not None


@pytest.mark.long
async def test_a_damaged_quick_reading_is_redone_before_its_full_one(home: Home) -> None:
    """Shows that a file of the right length with wrong bytes is detected on use and repaired."""
    home.embedder = embedder = TermEmbedder("terms")
    embedder.left = 0
    home.drop("hr/leave.pdf", pdf("Leave\nThere are seven kinds of marzipan leave."))
    await home.serve()
    await home.until_found("hr", "marzipan", "leave.pdf")
    (quick,) = [row for row in await home.rows(ReadingRow) if row.rung == "quick"]
    chunks = home.files.root / quick.id.hex[:2] / str(quick.id) / "chunks.lines"
    chunks.write_bytes(bytes(chunks.stat().st_size))
    embedder.left = None
    await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    assert [chunk.ordinal for chunk in await home.files.chunks(quick.id)] == [0]


async def test_a_full_reading_uses_the_page_layout(home: Home) -> None:
    """A table becomes Markdown after the flip; page and mark of earlier links are unchanged."""
    home.embedder = embedder = TermEmbedder("terms")
    embedder.left = 0
    home.drop(
        "hr/prices.pdf", table_pdf("Prices", [["Sweet", "Price"], ["Marzipan", "12.50"], ["Nougat", "8.20"]])
    )
    await home.serve(layout=True)
    await home.until_found("hr", "marzipan", "prices.pdf")
    (quick,) = [row for row in await home.rows(ReadingRow) if row.rung == "quick"]
    (before,) = await home.files.chunks(quick.id)
    embedder.left = None
    live = await home.until_found("hr", "marzipan", "prices.pdf", Rung.FULL)
    (after,) = await home.files.chunks(live.reading_id)
    assert "| Marzipan | 12.50 |" in after.text
    assert "|" not in before.text
    boxes = [{word.box for word in one.words} for one in (before, after)]
    assert boxes[0] == boxes[1]


async def test_a_scan_is_read_by_ocr_and_a_blank_one_is_refused(home: Home) -> None:
    """The full reading of a PDF of images has the words that OCR found."""
    home.embedder = TermEmbedder("terms")
    home.drop("hr/scan.pdf", picture_pdf("The marzipan cupboard is opened by two people."))
    home.drop("hr/blank.pdf", pdf(""))
    await home.serve()
    live = await home.until_found("hr", "marzipan", "scan.pdf", Rung.FULL)
    (chunk,) = await home.files.chunks(live.reading_id)
    assert "marzipan cupboard" in chunk.text
    assert live.ocr_pages == {1}
    assert all(0 < word.box.x0 < word.box.x1 < 1 for word in chunk.words)

    async def is_refused() -> bool:
        return (await home.documents("hr"))["blank.pdf"].state == "quarantined"

    await home.until(is_refused)
    assert "no text" in str((await home.documents("hr"))["blank.pdf"].reason)


async def test_an_image_without_words_is_refused_after_ocr(home: Home) -> None:
    home.embedder = TermEmbedder("terms")
    home.drop("hr/scan.pdf", picture_pdf(""))
    await home.serve()

    async def is_refused() -> bool:
        document = (await home.documents("hr")).get("scan.pdf")
        return document is not None and document.state == "quarantined"

    await home.until(is_refused)
    assert "OCR" in str((await home.documents("hr"))["scan.pdf"].reason)


TWO = "Leave\nThere are seven kinds of marzipan leave. Ask your manager for a form."


async def test_a_full_reading_stores_vectors_of_quotable_sentences(home: Home) -> None:
    """Shows that they are found in the live reading, in the embedder's own space."""
    home.embedder = embedder = TermEmbedder("terms")
    home.drop("hr/leave.pdf", pdf(TWO))
    await home.serve()
    live = await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    (chunk,) = await home.files.chunks(live.reading_id)
    looked_up = SentenceVectorStore(SelfHealingReadings(home.files, home.database), embedder.space)
    (found,) = await looked_up.vectors([(live.reading_id, 0, chunk.text)])
    parts = [(one.start, one.end) for one in quotables(chunk.text)]
    assert list(found) == parts
    made = await embedder.aembed([chunk.text[start:end] for start, end in parts])
    assert all(found[part] @ vector > 0.999 for part, vector in zip(parts, made, strict=True))
    (full,) = [row for row in await home.rows(ReadingRow) if row.rung == "full"]
    assert (full.details or {})["sentences"] == len(parts)
    assert not (await home.ingestion().reconcile())


async def test_sentence_vectors_can_be_switched_off(home: Home) -> None:
    """Shows that they are computed later, once the switch is on again."""
    home.embedder = embedder = TermEmbedder("terms")
    home.drop("hr/leave.pdf", pdf(TWO))
    without = await home.serve(sentence_vectors=False)
    live = await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    assert await home.files.sentences([(live.reading_id, 0)]) == [None]
    assert len(embedder.texts) == live.chunks
    await without.stop()
    await home.serve()

    async def is_made_up_for() -> bool:
        again = await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
        return await home.files.sentences([(again.reading_id, 0)]) != [None]

    await home.until(is_made_up_for)
    assert len(embedder.texts) == len(set(embedder.texts)), "a chunk was embedded twice"
