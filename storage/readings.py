"""Keeps what a reading is made of, its pages, chunks, figures and vectors, in files beside the blobs.

A reading is a folder of checked lines and of vectors with their checksum. It appears whole or not at
all, and never changes; a byte that the disk changed is found out when it is read.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

from storage.blobs import Kept, list_shelves
from storage.checked_lines import has_lines, read_lines, read_some, write_lines
from storage.errors import BlobsUnavailable, LostReading
from storage.figure_models import Figure
from storage.models import Chunk, Page
from storage.reading_lines import (
    chunk_of,
    chunk_values,
    figure_of,
    figure_values,
    page_of,
    page_values,
    text_of,
    wordless_chunk,
)
from storage.vector_file import Vectors, has_vectors, read_vectors, write_vectors

T = TypeVar("T")

SHARED = ("pages.lines", "pages.index", "chunks.lines", "chunks.index")
"""The files that a full reading has in common with the quick one, or the one alike, it starts from."""

KEPT_IN_MEMORY = 512
"""Chunks and pages held in memory: some megabytes, and the passages of the questions just asked."""


class ReadingFiles:
    """Readings under ``root``, one folder each.

    Every method raises ``BlobsUnavailable`` when the disk is full or the files are unreachable, and
    ``LostReading`` when they are gone or damaged.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._recent: OrderedDict[tuple[UUID, str, int], Any] = OrderedDict()

    async def write(
        self,
        reading_id: UUID,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: Vectors | None,
        figures: Sequence[Figure] = (),
    ) -> None:
        """Keep a reading, durably; writing the same id again replaces it."""
        await asyncio.to_thread(self.write_here, reading_id, pages, chunks, vectors, figures)
        await self._forget(reading_id)

    async def write_vectors(
        self, reading_id: UUID, base: UUID, vectors: Vectors, figures: Sequence[Figure] = ()
    ) -> None:
        """Keep a reading with the pages and chunks of ``base``, and vectors and figures of its own."""
        await _in_thread(self._write_beside, reading_id, base, vectors, figures)
        await self._forget(reading_id)

    async def texts(self, reading_id: UUID) -> list[str]:
        """The text of every chunk, in order."""
        return await _in_thread(self._read_all, reading_id, "chunks", text_of)

    async def chunks(self, reading_id: UUID) -> list[Chunk]:
        """All chunks in order."""
        return await _in_thread(self._read_all, reading_id, "chunks", chunk_of)

    async def pages(self, reading_id: UUID) -> list[Page]:
        """All pages in order."""
        return await _in_thread(self._read_all, reading_id, "pages", page_of)

    async def figures(self, reading_id: UUID) -> list[Figure]:
        """All figures in order; lost where the reading has none."""
        return await _in_thread(self._read_all, reading_id, "figures", figure_of)

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        """One figure, counted from 0; raises as ``chunk``."""
        return await self._one(reading_id, "figures", number, figure_of)

    async def chunk(self, reading_id: UUID, ordinal: int) -> Chunk:
        """One chunk.

        Raises:
            LookupError: the reading has no chunk of this number.
        """
        return await self._one(reading_id, "chunks", ordinal, chunk_of)

    async def page(self, reading_id: UUID, number: int) -> Page:
        """One page, counted from 1.

        Raises:
            LookupError: the reading has no page of this number.
        """
        return await self._one(reading_id, "pages", number - 1, page_of)

    async def vectors(self, reading_id: UUID) -> Vectors | None:
        """The vectors, shape (chunks and then figures, dimensions); None for a reading without."""
        return await _in_thread(self._read_vectors, reading_id)

    async def remove(self, reading_id: UUID) -> None:
        """Erase a reading; one that is not there stays so."""
        await _in_thread(shutil.rmtree, self._folder(reading_id), ignore_errors=True)
        await self._forget(reading_id)

    async def listed(self, shelves: Iterable[str]) -> dict[str, Kept]:
        """What lies where the readings go whose ids begin with these pairs of digits, drafts included."""
        return await _in_thread(list_shelves, self.root, shelves)

    async def remove_entry(self, name: str) -> None:
        """Erase what was listed under this name: a draft, or a reading that SQL does not know."""
        prefix = name.lstrip(".")[:2]
        await _in_thread(shutil.rmtree, self.root / prefix / name, ignore_errors=True)

    async def is_whole(
        self, reading_id: UUID, *, pages: int, chunks: int, figures: int = 0, has_vectors: bool
    ) -> bool:
        """Whether every file is there and as long as it was when it was written; none is read through."""
        lines = {"pages": pages, "chunks": chunks, **({"figures": figures} if figures else {})}
        return await _in_thread(self._is_whole, reading_id, lines, chunks + figures if has_vectors else None)

    def _is_whole(self, reading_id: UUID, lines: Mapping[str, int], vectors: int | None) -> bool:
        folder = self._folder(reading_id)
        try:
            are_lines = all(has_lines(folder / name, number) for name, number in lines.items())
            return are_lines and (vectors is None or has_vectors(folder / "vectors.npy", vectors))
        except (FileNotFoundError, ValueError, LookupError, EOFError):
            return False

    def _folder(self, reading_id: UUID) -> Path:
        return self.root / reading_id.hex[:2] / str(reading_id)

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

    def write_here(
        self,
        reading_id: UUID,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: Vectors | None,
        figures: Sequence[Figure] = (),
    ) -> None:
        """``write`` in this very thread, for a process that has no loop."""

        def fill(folder: Path) -> None:
            write_lines(folder / "pages", map(page_values, pages))
            write_lines(folder / "chunks", map(chunk_values, chunks))
            if figures:
                write_lines(folder / "figures", map(figure_values, figures))
            if vectors is not None:
                write_vectors(folder / "vectors.npy", vectors)

        with _translated_errors():
            self._keep(reading_id, fill)

    def wordless_here(self, reading_id: UUID, first: int, end: int) -> list[Chunk]:
        """Chunks ``first`` to ``end`` - 1 without their words, which are most of their weight.

        Raises:
            LostReading: the reading has fewer, or its files are gone.
        """
        return [wordless_chunk(one) for one in self._some(reading_id, "chunks", first, end)]

    def figures_here(self, reading_id: UUID, first: int, end: int) -> list[Figure]:
        """Figures ``first`` to ``end`` - 1; raises as ``wordless_here``."""
        return [figure_of(one) for one in self._some(reading_id, "figures", first, end)]

    def _some(self, reading_id: UUID, kind: str, first: int, end: int) -> list[Any]:
        if first >= end:
            return []
        with _translated_errors():
            try:
                return read_some(self._folder(reading_id) / kind, first, end)
            except LookupError as error:
                raise LostReading("the files of a reading are gone or damaged") from error

    def _write_beside(
        self, reading_id: UUID, base: UUID, vectors: Vectors, figures: Sequence[Figure]
    ) -> None:
        def fill(folder: Path) -> None:
            for name in SHARED:
                _share(self._folder(base) / name, folder / name)
            if figures:
                write_lines(folder / "figures", map(figure_values, figures))
            write_vectors(folder / "vectors.npy", vectors)

        self._keep(reading_id, fill)

    def _keep(self, reading_id: UUID, fill: Callable[[Path], None]) -> None:
        final = self._folder(reading_id)
        temporary = final.with_name(f".{final.name}.{uuid4().hex}")
        temporary.mkdir(parents=True)
        try:
            fill(temporary)
            _sync_folder(temporary)
            _put_in_place(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _read_all(self, reading_id: UUID, kind: str, parse: Callable[[Any], T]) -> list[T]:
        return [parse(values) for values in read_lines(self._folder(reading_id) / kind)]

    def _read_one(self, reading_id: UUID, kind: str, index: int, parse: Callable[[Any], T]) -> T:
        (values,) = read_some(self._folder(reading_id) / kind, index, index + 1)
        return parse(values)

    def _read_vectors(self, reading_id: UUID) -> Vectors | None:
        path = self._folder(reading_id) / "vectors.npy"
        if not path.exists() and path.parent.exists():
            return None
        return read_vectors(path)


async def _in_thread(work: Callable[..., T], *arguments: Any, **options: Any) -> T:
    with _translated_errors():
        return await asyncio.to_thread(work, *arguments, **options)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, ValueError, EOFError) as error:
        raise LostReading("the files of a reading are gone or damaged") from error
    except OSError as error:
        raise BlobsUnavailable(f"the files of a reading cannot be reached: {error.strerror}") from error


def _share(file: Path, target: Path) -> None:
    """One file under two names: neither is ever changed, and each may be removed. Else a copy."""
    try:
        os.link(file, target)
    except OSError:  # this file system knows one name per file
        shutil.copyfile(file, target)
        with target.open("rb") as copy:
            os.fsync(copy.fileno())


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
