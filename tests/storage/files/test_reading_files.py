"""Reading files: written atomically, read line by line, deleted on removal."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from storage.errors import BlobsUnavailable, LostReading
from storage.files.reading_files import SHARED, ReadingFiles
from storage.models import Box, Chunk, Figure, FigureKind, Page, WordBox
from storage.queues.reading_repair import SelfHealingReadings
from storage.sql.database import Database
from storage.sql.tables import BlobRow, ReadingRow

WORDS = (
    WordBox(0, 5, 1, 0, Box(0.1, 0.8, 0.2, 0.82)),
    WordBox(6, 10, 1, 0, Box(0.21, 0.79, 0.3, 0.82)),
    WordBox(11, 17, 1, 1, Box(0.1, 0.84, 0.25, 0.86)),
    WordBox(18, 27, 2, 0, Box(0.1, 0.1, 0.4, 0.12)),
)
PAGES = [Page(1, "iv", 595.0, 842.0, "First page", WORDS[:3]), Page(2, "", 842.0, 595.0, "Zürich 😀", ())]
FIGURES = [
    Figure(
        1, Box(0.1, 0.2, 0.9, 0.5), FigureKind.BAR, True, 0, ("A",), "Figure 1", "See it.", "12 kg", "Bars"
    ),
    Figure(2, Box(0, 0, 1, 1), FigureKind.UNKNOWN, False, None, (), "", "", "Zürich"),
]
CHUNKS = [
    Chunk(number, f"Chunk {number} ü", 4, ("A", "B"), WORDS, ((0, 1), (18, 2)), sections)
    for number, sections in enumerate([(), ((0, ("A", "B")), (18, ("A", "C"))), ()])
]

# Of the chunks, then of the figures.
VECTORS = np.eye(5, 4, dtype=np.float32)


@pytest.fixture
def files(tmp_path: Path) -> ReadingFiles:
    return ReadingFiles(tmp_path)


@pytest.fixture
async def kept(files: ReadingFiles) -> UUID:
    """A reading of two pages, three chunks and two figures with vectors."""
    reading = uuid4()
    await files.write(reading, PAGES, CHUNKS, VECTORS, FIGURES)
    return reading


def folder_of(files: ReadingFiles, reading: UUID) -> Path:
    """Return the folder of a reading."""
    (folder,) = files.root.rglob(str(reading))
    return folder


async def test_a_reading_round_trips(files: ReadingFiles, kept: UUID) -> None:
    """Pages, chunks, figures and vectors are equal, alone and together, from memory and from disk."""
    for reader in (files, files, ReadingFiles(files.root)):
        assert await reader.chunks(kept) == CHUNKS
        assert await reader.chunks_at([(kept, number) for number in range(3)]) == CHUNKS
        assert [await reader.page(kept, number) for number in (1, 2)] == PAGES
        vectors = await reader.vectors(kept)
        assert vectors is not None
        assert np.array_equal(vectors, VECTORS)
        assert await reader.figures(kept) == FIGURES
        assert [await reader.figure(kept, number) for number in range(2)] == FIGURES
    assert files.figures_here(kept, 1, 2) == FIGURES[1:]


async def test_sections_are_found_by_their_first_page(files: ReadingFiles, kept: UUID) -> None:
    """Includes sections that begin within a chunk."""
    first = (("A", "B"), 1)
    assert await files.sections(kept) == [first, first, (("A", "C"), 2), first]


async def test_a_reading_without_figures_is_complete(files: ReadingFiles) -> None:
    """No figures file is written or missed."""
    reading = uuid4()
    await files.write(reading, PAGES, CHUNKS, np.eye(3, 4, dtype=np.float32))
    assert not list(files.root.rglob("figures.*"))
    assert await files.is_whole(reading, pages=2, chunks=3, has_vectors=True)
    assert files.figures_here(reading, 0, 0) == []
    with pytest.raises(LostReading):
        await files.figures(reading)


async def test_one_chunk_is_read_without_the_others(files: ReadingFiles, kept: UUID) -> None:
    """A chunk is read although the line before it is corrupt."""
    path = folder_of(files, kept) / "chunks.lines"
    first = path.read_bytes().index(b"\n")
    path.write_bytes(b"x" * first + path.read_bytes()[first:])
    assert await files.chunks_at([(kept, 1)]) == CHUNKS[1:2]
    with pytest.raises(LostReading):
        await files.chunks_at([(kept, 0)])


async def test_numbers_beyond_the_end_are_refused(files: ReadingFiles, kept: UUID) -> None:
    """No neighbour is returned instead."""
    for number in (-1, 3, 10**9):
        with pytest.raises(LookupError):
            await files.chunks_at([(kept, number)])
    with pytest.raises(LookupError):
        await files.page(kept, 0)


async def test_a_reading_without_vectors_has_none(files: ReadingFiles) -> None:
    """The quick rung has no vectors, an empty document no chunks."""
    reading = uuid4()
    await files.write(reading, PAGES, [], None)
    assert await files.vectors(reading) is None
    assert await files.chunks(reading) == []


async def test_writing_replaces_and_removing_deletes(files: ReadingFiles, kept: UUID) -> None:
    """Repeating a write leaves one reading; removal clears memory and disk."""
    await files.chunks_at([(kept, 0)])
    await files.write(kept, PAGES, CHUNKS[1:], None)
    assert await files.chunks_at([(kept, 0)]) == CHUNKS[1:2]
    assert await files.vectors(kept) is None
    await files.remove(kept)
    await files.remove(kept)
    assert not [path for path in files.root.rglob("*") if path.is_file()]
    with pytest.raises(BlobsUnavailable):
        await files.chunks_at([(kept, 0)])
    with pytest.raises(BlobsUnavailable):
        await files.vectors(kept)


async def test_a_failed_write_leaves_no_file(files: ReadingFiles) -> None:
    reading = uuid4()
    with pytest.raises(TypeError):
        await files.write(reading, PAGES, [Chunk(0, {1}, 1, (), (), ())], None)  # type: ignore[arg-type]
    assert not [path for path in files.root.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", [*SHARED, "figures.lines", "figures.index", "vectors.npy"])
@pytest.mark.parametrize("bytes_left", [None, 0, -1])
async def test_a_reading_that_lost_a_file_or_byte_is_incomplete(
    files: ReadingFiles, kept: UUID, name: str, bytes_left: int | None
) -> None:
    """Checks every file and its last byte without reading it through."""
    assert await files.is_whole(kept, pages=2, chunks=3, figures=2, has_vectors=True)
    path = folder_of(files, kept) / name
    left = b"" if bytes_left is None else path.read_bytes()[:bytes_left]
    path.unlink()
    if bytes_left is not None:
        path.write_bytes(left)
    assert not await files.is_whole(kept, pages=2, chunks=3, figures=2, has_vectors=True)


async def test_missing_last_lines_count_as_a_loss(files: ReadingFiles, kept: UUID) -> None:
    """A file truncated between two lines is not read as a shorter document."""
    path = folder_of(files, kept) / "chunks.lines"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(LostReading):
        await files.chunks(kept)


@pytest.mark.parametrize(
    "name", ["pages.lines", "chunks.lines", "chunks.index", "figures.lines", "figures.index", "vectors.npy"]
)
async def test_a_flipped_bit_is_always_detected(files: ReadingFiles, kept: UUID, name: str) -> None:
    """Whichever bit is flipped, the original content is read or none."""
    path = folder_of(files, kept) / name
    sound = path.read_bytes()
    for bit in range(0, 8 * len(sound), 11):  # each of a byte's eight bits in turn
        path.write_bytes(_flipped(sound, bit))
        await files.is_whole(kept, pages=2, chunks=3, figures=2, has_vectors=True)
        await _read_everything(ReadingFiles(files.root), kept)


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


async def _read_everything(files: ReadingFiles, kept: UUID) -> None:
    """Read every part; each is correct or raises LostReading."""
    reads: list[tuple[Awaitable[Any], Any]] = [
        (files.chunks(kept), CHUNKS),
        (files.pages(kept), PAGES),
        (files.chunks_at([(kept, 1)]), CHUNKS[1:2]),
        (files.page(kept, 2), PAGES[1]),
        (files.figures(kept), FIGURES),
        (files.figure(kept, 1), FIGURES[1]),
        (_vector_bytes(files, kept), VECTORS.tobytes()),
    ]
    for read, written in reads:
        with suppress(LostReading):
            assert await read == written


async def _vector_bytes(files: ReadingFiles, kept: UUID) -> bytes:
    vectors = await files.vectors(kept)
    assert vectors is not None
    assert (vectors.shape, vectors.dtype) == (VECTORS.shape, np.float32)
    return vectors.tobytes()


async def test_a_corrupt_reading_is_queued_for_rereading(
    files: ReadingFiles, kept: UUID, database: Database
) -> None:
    """The question fails, and each lost reading is queued for ``serve`` and reported once."""
    other = uuid4()
    await files.write(other, PAGES, CHUNKS, None)
    await _know(database, kept, other)
    for one in (kept, other):
        path = folder_of(files, one) / "chunks.lines"
        path.write_bytes(path.read_bytes().replace(b"Chunk 1", b"Chonk 1"))
    readings = SelfHealingReadings(files, database)
    for _ in range(2):
        assert await readings.chunks_at([(kept, 0), (kept, 2)]) == [CHUNKS[0], CHUNKS[2]]
        with pytest.raises(LostReading):
            await readings.chunks_at([(kept, 0), (kept, 1), (other, 1)])
    async with database.snapshot() as session:
        rows = [await session.get_one(ReadingRow, one) for one in (kept, other)]
        assert [(row.state, row.attempts) for row in rows] == 2 * [("waiting", 0)]


async def _know(database: Database, *readings: UUID) -> None:
    async with database.transaction() as session:
        session.add(BlobRow(sha256="ab", size=1))
        await session.flush()
        for number, one in enumerate(readings):
            session.add(ReadingRow(id=one, sha256="ab", generation=str(number), rung="quick", state="done"))


async def test_a_full_reading_shares_pages_and_chunks_with_the_quick(files: ReadingFiles, kept: UUID) -> None:
    """Vectors and figures are separate; each reading is removed independently."""
    full, vectors = uuid4(), np.full((5, 4), 0.5, dtype=np.float32)
    await files.write_vectors(full, kept, vectors, FIGURES[:1])
    await files.remove(kept)
    assert await files.chunks(full) == CHUNKS
    assert await files.pages(full) == PAGES
    assert await files.figures(full) == FIGURES[:1]
    wordless = await files.wordless_chunks(full)
    assert [one.text for one in wordless] == [chunk.text for chunk in CHUNKS]
    assert not any(one.words for one in wordless)
    assert np.array_equal(await files.vectors(full), vectors)


async def test_vectors_are_not_written_without_their_quick_reading(files: ReadingFiles) -> None:
    """Shows that a missing quick reading raises LostReading and leaves no file."""
    with pytest.raises(LostReading):
        await files.write_vectors(uuid4(), uuid4(), np.eye(3, 4, dtype=np.float32))
    assert not [path for path in files.root.rglob("*") if path.is_file()]
