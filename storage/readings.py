"""Keeps what a reading is made of, its pages, chunks and vectors, in files beside the blobs.

A reading is a folder of JSON lines with an index of where each line begins, so that one chunk is
read without parsing the others. It appears whole or not at all, and never changes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt

from storage.blobs import Kept, list_shelf
from storage.errors import BlobsUnavailable, LostReading
from storage.models import Box, Chunk, Page, PlacedWord

Vectors = npt.NDArray[np.float32]
T = TypeVar("T")

SCALE = 10_000
KEPT_IN_MEMORY = 512
"""Chunks and pages held in memory: some megabytes, and the passages of the questions just asked."""


class ReadingFiles:
    """Readings under ``root``, one folder each.

    Every method raises ``BlobsUnavailable`` when the disk is full or the files are unreachable, and
    ``LostReading`` when they are gone or damaged.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._recent: OrderedDict[tuple[UUID, str, int], Any] = OrderedDict()

    async def write(
        self, reading_id: UUID, pages: Sequence[Page], chunks: Sequence[Chunk], vectors: Vectors | None
    ) -> None:
        """Keep a reading, durably; writing the same id again replaces it."""
        await _in_thread(self._write, reading_id, pages, chunks, vectors)
        await self._forget(reading_id)

    async def chunks(self, reading_id: UUID) -> list[Chunk]:
        """All chunks in order."""
        return await _in_thread(self._read_all, reading_id, "chunks", _chunk)

    async def pages(self, reading_id: UUID) -> list[Page]:
        """All pages in order."""
        return await _in_thread(self._read_all, reading_id, "pages", _page)

    async def chunk(self, reading_id: UUID, ordinal: int) -> Chunk:
        """One chunk.

        Raises:
            LookupError: the reading has no chunk of this number.
        """
        return await self._one(reading_id, "chunks", ordinal, _chunk)

    async def page(self, reading_id: UUID, number: int) -> Page:
        """One page, counted from 1.

        Raises:
            LookupError: the reading has no page of this number.
        """
        return await self._one(reading_id, "pages", number - 1, _page)

    async def vectors(self, reading_id: UUID) -> Vectors | None:
        """The vectors, shape (chunks, dimensions); None for a reading without."""
        return await _in_thread(self._read_vectors, reading_id)

    async def remove(self, reading_id: UUID) -> None:
        """Erase a reading; one that is not there stays so."""
        await _in_thread(shutil.rmtree, self._folder(reading_id), ignore_errors=True)
        await self._forget(reading_id)

    async def shelf(self, prefix: str) -> dict[str, Kept]:
        """What lies where the readings go whose ids begin with these two digits, drafts included."""
        return await _in_thread(list_shelf, self._root / prefix)

    async def remove_entry(self, prefix: str, name: str) -> None:
        """Erase one entry of a shelf: a draft, or a reading that SQL does not know."""
        await _in_thread(shutil.rmtree, self._root / prefix / name, ignore_errors=True)

    async def is_whole(self, reading_id: UUID, *, pages: int, chunks: int, has_vectors: bool) -> bool:
        """Whether every file is there and as long as it was when it was written; none is read through."""
        return await _in_thread(self._is_whole, reading_id, pages, chunks, has_vectors)

    def _is_whole(self, reading_id: UUID, pages: int, chunks: int, has_vectors: bool) -> bool:
        folder = self._folder(reading_id)
        try:
            are_lines = _has_lines(folder / "pages", pages) and _has_lines(folder / "chunks", chunks)
            return are_lines and (not has_vectors or len(np.load(folder / "vectors.npy", "r")) == chunks)
        except (FileNotFoundError, ValueError, LookupError, EOFError):
            return False

    def _folder(self, reading_id: UUID) -> Path:
        return self._root / reading_id.hex[:2] / str(reading_id)

    async def _forget(self, reading_id: UUID) -> None:
        for key in [key for key in self._recent if key[0] == reading_id]:
            del self._recent[key]

    async def _one(self, reading_id: UUID, kind: str, index: int, parse: Callable[[Any], T]) -> T:
        key = (reading_id, kind, index)
        if key not in self._recent:
            self._recent[key] = await _in_thread(self._read_one, reading_id, kind, index, parse)
        self._recent.move_to_end(key)
        found: T = self._recent[key]
        while len(self._recent) > KEPT_IN_MEMORY:
            self._recent.popitem(last=False)
        return found

    def _write(
        self, reading_id: UUID, pages: Sequence[Page], chunks: Sequence[Chunk], vectors: Vectors | None
    ) -> None:
        final = self._folder(reading_id)
        temporary = final.with_name(f".{final.name}.{uuid4().hex}")
        temporary.mkdir(parents=True)
        try:
            _write_lines(temporary / "pages", map(_page_values, pages))
            _write_lines(temporary / "chunks", map(_chunk_values, chunks))
            if vectors is not None:
                _write_vectors(temporary / "vectors.npy", vectors)
            _sync_folder(temporary)
            _put_in_place(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _read_all(self, reading_id: UUID, kind: str, parse: Callable[[Any], T]) -> list[T]:
        with (self._folder(reading_id) / f"{kind}.jsonl").open("rb") as lines:
            return [parse(json.loads(line)) for line in lines]

    def _read_one(self, reading_id: UUID, kind: str, index: int, parse: Callable[[Any], T]) -> T:
        folder = self._folder(reading_id)
        with (folder / f"{kind}.index").open("rb") as starts:
            start, end = _bounds(starts.fileno(), index)
        with (folder / f"{kind}.jsonl").open("rb") as lines:
            return parse(json.loads(os.pread(lines.fileno(), end - start, start)))

    def _read_vectors(self, reading_id: UUID) -> Vectors | None:
        path = self._folder(reading_id) / "vectors.npy"
        if not path.exists() and path.parent.exists():
            return None
        loaded: Vectors = np.load(path, allow_pickle=False)
        return loaded


async def _in_thread(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    try:
        return await asyncio.to_thread(work, *arguments, **options)
    except (FileNotFoundError, NotADirectoryError, ValueError, EOFError) as error:
        raise LostReading("the files of a reading are gone or damaged") from error
    except OSError as error:
        raise BlobsUnavailable(f"the files of a reading cannot be reached: {error.strerror}") from error


def _write_lines(path: Path, values: Iterable[Any]) -> None:
    """JSON lines, and beside them the byte at which each begins and the last one ends."""
    starts = array("Q", [0])
    with path.with_suffix(".jsonl").open("wb") as lines:
        for value in values:
            lines.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
            starts.append(lines.tell())
        _sync(lines)
    with path.with_suffix(".index").open("wb") as index:
        starts.tofile(index)
        _sync(index)


def _write_vectors(path: Path, vectors: Vectors) -> None:
    with path.open("wb") as file:
        np.save(file, np.asarray(vectors, dtype=np.float32), allow_pickle=False)
        _sync(file)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put_in_place(temporary: Path, final: Path) -> None:
    """One rename; an older folder of that name steps aside first, which only a repeated step meets."""
    if final.exists():
        aside = final.with_name(f"{temporary.name}.old")
        final.rename(aside)
        temporary.rename(final)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        temporary.rename(final)
    _sync_folder(final.parent)
    _sync_folder(final.parent.parent)


def _bounds(index: int, number: int) -> tuple[int, int]:
    """Where line ``number`` begins and ends, from the index file."""
    data = os.pread(index, 16, number * 8) if number >= 0 else b""
    if len(data) < 16:
        raise LookupError(f"the reading holds no number {number}")
    start, end = array("Q", data)
    return start, end


def _has_lines(path: Path, number: int) -> bool:
    """Whether there are ``number`` lines that end where the index says the last one ends."""
    with path.with_suffix(".index").open("rb") as starts:
        end = _bounds(starts.fileno(), number - 1)[1] if number else 0
        return path.with_suffix(".jsonl").stat().st_size == end and os.fstat(starts.fileno()).st_size == 8 * (
            number + 1
        )


def _page_values(page: Page) -> list[Any]:
    return [page.number, page.label, page.width, page.height, page.text, _flat(page.words)]


def _page(values: list[Any]) -> Page:
    number, label, width, height, text, words = values
    return Page(number, label, width, height, text, _placed(words))


def _chunk_values(chunk: Chunk) -> list[Any]:
    words = _flat(chunk.words)
    return [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]


def _chunk(values: list[Any]) -> Chunk:
    ordinal, text, tokens, path, words, starts = values
    page_starts = tuple((offset, page) for offset, page in starts)
    return Chunk(ordinal, text, tokens, tuple(path), _placed(words), page_starts)


def _flat(words: Sequence[PlacedWord]) -> list[int]:
    """Eight whole numbers per word: half the size of nested lists, and parsed twice as fast."""
    flat: list[int] = []
    for start, end, page, line, (x0, y0, x1, y1) in words:
        flat += (
            start,
            end,
            page,
            line,
            round(x0 * SCALE),
            round(y0 * SCALE),
            round(x1 * SCALE),
            round(y1 * SCALE),
        )
    return flat


def _placed(flat: list[int]) -> tuple[PlacedWord, ...]:
    return tuple(
        PlacedWord(start, end, page, line, Box(x0 / SCALE, y0 / SCALE, x1 / SCALE, y1 / SCALE))
        for start, end, page, line, x0, y0, x1, y1 in zip(*[iter(flat)] * 8, strict=True)
    )
