"""Sentence vectors: int8 quantization is precise enough, and each is looked up by its text."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from storage.embeddings.onnx_embedder import BundledEmbedder
from storage.embeddings.quantized_vectors import ChunkSentenceVectors, dequantize, quantize
from storage.errors import BlobsUnavailable
from storage.files.reading_files import ReadingFiles
from storage.models import Chunk
from storage.queues.reading_repair import SelfHealingReadings, SentenceVectorStore
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ReadingRow
from storage.text.sentences import quotables

TEXT = "Backups run daily. A failed backup is repeated within 4 hours."
SPANS = ((0, 18), (19, 62))
CHUNKS = [Chunk(0, TEXT, 12, (), (), ((0, 1),)), Chunk(1, "Call us.", 2, (), (), ((0, 1),))]
VECTORS = dequantize(np.array([[127, 0, 1], [-3, 127, 90]], dtype=np.int8))
SENTENCES = [
    ChunkSentenceVectors.create("space", TEXT, SPANS, quantize(VECTORS)),
    ChunkSentenceVectors.create("space", "Call us.", (), np.zeros((0, 3), np.int8)),
]


@pytest.fixture
def files(tmp_path: Path) -> ReadingFiles:
    return ReadingFiles(tmp_path)


@pytest.fixture
async def kept(files: ReadingFiles) -> UUID:
    """A full reading with sentence vectors."""
    return await keep(files)


async def keep(files: ReadingFiles) -> UUID:
    """Write a full reading with sentence vectors and return its id."""
    quick, full = uuid4(), uuid4()
    await files.write(quick, [], CHUNKS, None)
    await files.write_vectors(full, quick, np.eye(2, 3, dtype=np.float32), (), SENTENCES)
    return full


def test_quantization_moves_no_cosine_by_more_than_0_005() -> None:
    """Shows on real vectors that int8 is accurate to 0.005, and that quantizing twice changes nothing."""
    with_units = (Path(__file__).parents[3] / "docs" / "walk.md").read_text()
    units = [one.text for one in quotables(with_units)][:60]
    embedder = BundledEmbedder.load(None, 1)
    vectors = embedder.embed(units)
    embedder.close()
    brief = quantize(vectors)
    assert brief.nbytes * 4 == vectors.nbytes
    assert np.abs(vectors @ vectors.T - vectors @ dequantize(brief).T).max() < 0.005
    assert np.array_equal(quantize(dequantize(brief)), brief)
    assert np.allclose(np.linalg.norm(dequantize(brief), axis=1), 1, atol=1e-6)


async def test_each_quotable_sentence_has_its_vector(
    files: ReadingFiles, kept: UUID, database: Database
) -> None:
    """Vectors are found by their place in the text, the second time from memory."""
    looked_up = SentenceVectorStore(SelfHealingReadings(files, database), "space")
    for _ in range(2):
        found, nothing = await looked_up.vectors([(kept, 0, TEXT), (kept, 1, "Call us.")])
        assert list(found) == list(SPANS)
        assert np.allclose([found[span] for span in SPANS], VECTORS)
        assert nothing == {}


async def test_mismatching_space_or_text_yields_no_vector(
    files: ReadingFiles, kept: UUID, database: Database
) -> None:
    """Another space, another text or a reading without sentences yields no vector and no error."""
    readings, quick = SelfHealingReadings(files, database), uuid4()
    await files.write(quick, [], CHUNKS, None)
    assert await SentenceVectorStore(readings, "another").vectors([(kept, 0, TEXT)]) == [{}]
    places = [(kept, 0, TEXT.upper()), (quick, 0, TEXT)]
    assert await SentenceVectorStore(readings, "space").vectors(places) == [{}, {}]


async def test_corrupt_vectors_are_skipped_and_rebuilt(
    files: ReadingFiles, kept: UUID, database: Database
) -> None:
    """A changed byte costs a question only those vectors, and the PDF is read again."""
    async with database.transaction() as session:
        session.add(BlobRow(sha256="ab", size=1))
        await session.flush()
        session.add(ReadingRow(id=kept, sha256="ab", generation="one", rung="full", state="done"))
    (path,) = files.root.rglob("sentences.lines")
    path.write_bytes(path.read_bytes().replace(b"space", b"spice"))
    sound = await keep(files)
    looked_up = SentenceVectorStore(SelfHealingReadings(files, database), "space")
    damaged, others = await looked_up.vectors([(kept, 0, TEXT), (sound, 0, TEXT)])
    assert damaged == {}
    assert list(others) == list(SPANS)
    async with database.snapshot() as session:
        assert (await session.get_one(ReadingRow, kept)).state == "waiting"


async def test_an_unavailable_disk_raises_instead_of_skipping(
    files: ReadingFiles, kept: UUID, database: Database
) -> None:
    """An unreachable store raises, as for chunks."""
    (path,) = files.root.rglob("sentences.lines")
    path.unlink()
    path.mkdir()
    with pytest.raises(BlobsUnavailable):
        await SentenceVectorStore(SelfHealingReadings(files, database), "space").vectors([(kept, 0, TEXT)])


@pytest.mark.parametrize("name", ["sentences.lines", "sentences.index"])
async def test_a_reading_that_lost_its_vectors_is_incomplete(
    files: ReadingFiles, kept: UUID, name: str
) -> None:
    """Shows that the reconciler misses them only where they existed."""
    has = {"pages": 0, "chunks": 2, "has_vectors": True}
    assert await files.is_whole(kept, **has, has_sentences=True)  # type: ignore[arg-type]
    (path,) = files.root.rglob(name)
    path.unlink()
    assert not await files.is_whole(kept, **has, has_sentences=True)  # type: ignore[arg-type]
    assert await files.is_whole(kept, **has)  # type: ignore[arg-type]
