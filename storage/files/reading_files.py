"""Files of readings: pages, chunks, figures and vectors, next to the blobs.

A reading is a folder of checksummed lines and vectors. It appears complete or not at all, and never changes;
corruption is detected on reading. In object storage it is one ZIP file, and the folders are a cache.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from storage.embeddings.quantized_vectors import (
    ChunkSentenceVectors,
    dump_sentence_vectors,
    parse_sentence_vectors,
)
from storage.errors import BlobsUnavailable, LostReading
from storage.files.file_format import (
    Vectors,
    chunk_of,
    chunk_values,
    figure_of,
    figure_values,
    has_lines,
    has_vectors,
    link_or_copy,
    page_of,
    page_text_of,
    page_values,
    read_lines,
    read_some,
    read_vectors,
    searched_text,
    sections_of,
    wordless_chunk,
    write_folder_atomically,
    write_lines,
    write_vectors,
)
from storage.files.local_cache import list_shards
from storage.files.object_store import StoredFile
from storage.files.reading_archive import ReadingArchive
from storage.lru_cache import LRUCache
from storage.models import Chunk, Figure, Page
from storage.text.analyzer import alphabetic_words

T = TypeVar("T")
# Key of a line: (reading, kind of line, number from 0).
_Line = tuple[UUID, str, int]

# Files that a full reading shares with the reading from which it starts.
SHARED = ("pages.lines", "pages.index", "chunks.lines", "chunks.index")

# Lines cached in memory: some megabytes, enough for the passages of the latest questions.
CACHED_LINES = 512


class ReadingFiles:
    """Readings under ``root``, one folder each.

    Every method raises ``BlobsUnavailable`` if the disk is full or the files are unreachable, and
    ``LostReading`` if they are gone or corrupt.
    """

    def __init__(self, root: Path, archive: ReadingArchive | None = None) -> None:
        """With ``archive``, all readings are in object storage, and ``root`` is a cache."""
        self.root = root.absolute()
        self.archive = archive
        self._recent: LRUCache[_Line, Any] = LRUCache(CACHED_LINES)

    async def write(
        self,
        reading_id: UUID,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: Vectors | None,
        figures: Sequence[Figure] = (),
    ) -> None:
        """Write a reading durably; writing the same id again replaces it."""
        await asyncio.to_thread(self.write_here, reading_id, pages, chunks, vectors, figures)
        await self.upload(reading_id)
        await self._evict_lines(reading_id)

    async def write_vectors(
        self,
        reading_id: UUID,
        base: UUID,
        vectors: Vectors,
        figures: Sequence[Figure] = (),
        sentences: Sequence[ChunkSentenceVectors] = (),
    ) -> None:
        """Write a reading that shares the pages and chunks of ``base``, with new vectors and figures.

        ``sentences``: those of every chunk, in order; empty to store none.
        """
        await self.fetch(base)
        await _in_thread(self._write_beside, reading_id, base, vectors, figures, sentences)
        await self.upload(reading_id)
        await self._evict_lines(reading_id)

    async def upload(self, reading_id: UUID) -> None:
        """Upload a reading written here to the archive, if there is one."""
        if self.archive:
            await self.archive.upload(reading_id)

    async def fetch(self, reading_id: UUID) -> None:
        """Download a reading's files into their folder, where other processes can read them for a minute."""
        if self.archive:
            await self.archive.fetch(reading_id)

    async def evict(self, reading_id: UUID) -> None:
        """Evict this machine's copy of a reading."""
        await _in_thread(shutil.rmtree, self._folder(reading_id), ignore_errors=True)
        await self._evict_lines(reading_id)

    async def wordless_chunks(self, reading_id: UUID) -> list[Chunk]:
        """Return all chunks in order, without their words: boxes are not unpacked."""
        return await self._read([reading_id], self._read_all, reading_id, "chunks", wordless_chunk)

    async def word_counts(self, reading_id: UUID) -> Mapping[str, int]:
        """Return how often each lower-case word occurs in the headings and text of the chunks."""
        return await self._read([reading_id], self._count_words, reading_id)

    async def chunks(self, reading_id: UUID) -> list[Chunk]:
        """Return all chunks in order."""
        return await self._read([reading_id], self._read_all, reading_id, "chunks", chunk_of)

    async def pages(self, reading_id: UUID) -> list[Page]:
        """Return all pages in order."""
        return await self._read([reading_id], self._read_all, reading_id, "pages", page_of)

    async def page_texts(self, reading_id: UUID) -> list[str]:
        """Return the text of every page, in order; word boxes are not unpacked."""
        return await self._read([reading_id], self._read_all, reading_id, "pages", page_text_of)

    async def sections(self, reading_id: UUID) -> list[tuple[tuple[str, ...], int]]:
        """Return (headings, first page) of every section, in order."""
        found = await self._read([reading_id], self._read_all, reading_id, "chunks", sections_of)
        return list(chain.from_iterable(found))

    async def figures(self, reading_id: UUID) -> list[Figure]:
        """Return all figures in order; raise LostReading if the reading has none."""
        return await self._read([reading_id], self._read_all, reading_id, "figures", figure_of)

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        """Return a figure, counted from 0; raise as ``chunks_at``."""
        return await self._one(reading_id, "figures", number, figure_of)

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> list[Chunk]:
        """Return the chunk of each (reading, ordinal).

        Raises:
            LookupError: a reading has no chunk of this number.
        """
        keys = [(reading_id, "chunks", ordinal) for reading_id, ordinal in places]
        return await self._remembered(keys, partial(self._read_one, parse=chunk_of))

    async def page(self, reading_id: UUID, number: int) -> Page:
        """Return a page, counted from 1.

        Raises:
            LookupError: the reading has no page of this number.
        """
        return await self._one(reading_id, "pages", number - 1, page_of)

    async def vectors(self, reading_id: UUID) -> Vectors | None:
        """Return the vectors, shape (chunks and then figures, dimensions); None if there are none."""
        return await self._read([reading_id], self._read_vectors, reading_id)

    async def sentences(self, places: Sequence[tuple[UUID, int]]) -> list[ChunkSentenceVectors | None]:
        """Return the quotable sentences and vectors of each (reading, ordinal); None for a reading without.

        Raises as ``chunks_at``; one lost reading fails all.
        """
        keys = [(reading_id, "sentences", ordinal) for reading_id, ordinal in places]
        return await self._remembered(keys, self._read_sentences)

    async def remove(self, reading_id: UUID) -> None:
        """Remove a reading, here and in the archive; idempotent."""
        if self.archive:
            await self.archive.remove([str(reading_id)])
        await self.evict(reading_id)

    async def listed(self, shards: Iterable[str]) -> dict[str, StoredFile]:
        """Return the entries in these shards of readings, drafts included."""
        if self.archive:
            return await self.archive.listed(shards)
        return await _in_thread(list_shards, self.root, shards)

    async def remove_entry(self, name: str) -> None:
        """Remove a listed entry: a draft, or a reading that SQL does not know."""
        prefix = name.lstrip(".")[:2]
        if self.archive:
            await self.archive.remove([name])
        await _in_thread(shutil.rmtree, self.root / prefix / name, ignore_errors=True)

    async def is_whole(
        self,
        reading_id: UUID,
        *,
        pages: int,
        chunks: int,
        figures: int = 0,
        has_vectors: bool,
        has_sentences: bool = False,
    ) -> bool:
        """True if every file exists with the length it was written with; contents are not read.

        With an archive: True if that has the reading, or has received it from here.
        """
        lines = {"pages": pages, "chunks": chunks}
        lines |= {"figures": figures} if figures else {}
        lines |= {"sentences": chunks} if has_sentences else {}
        count = chunks + figures if has_vectors else None
        if self.archive and await self.archive.has(reading_id):
            return True
        is_whole = await _in_thread(self._is_whole, reading_id, lines, count)
        if is_whole:
            await self.upload(reading_id)
        return is_whole

    def _is_whole(self, reading_id: UUID, lines: Mapping[str, int], vectors: int | None) -> bool:
        folder = self._folder(reading_id)
        try:
            are_lines = all(has_lines(folder / name, number) for name, number in lines.items())
            return are_lines and (vectors is None or has_vectors(folder / "vectors.npy", vectors))
        except (FileNotFoundError, ValueError, LookupError, EOFError):
            return False

    def _folder(self, reading_id: UUID) -> Path:
        return self.root / reading_id.hex[:2] / str(reading_id)

    async def _evict_lines(self, reading_id: UUID) -> None:
        for key in [key for key in self._recent if key[0] == reading_id]:
            del self._recent[key]

    async def _read(self, readings: Collection[UUID], work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work`` on these readings' files; download corrupt local copies again and retry once."""
        await asyncio.gather(*map(self.fetch, readings))
        try:
            return await _in_thread(work, *arguments)
        except LostReading:
            if self.archive is None:
                raise
        for reading_id in readings:
            await self.evict(reading_id)
        await asyncio.gather(*map(self.fetch, readings))
        return await _in_thread(work, *arguments)

    async def _one(self, reading_id: UUID, kind: str, index: int, parse: Callable[[Any], T]) -> T:
        (found,) = await self._remembered([(reading_id, kind, index)], partial(self._read_one, parse=parse))
        return found

    async def _remembered(self, keys: Sequence[_Line], read: Callable[[_Line], T]) -> list[T]:
        """Return the value of each line; those not cached in memory are read in one thread call."""
        found: dict[_Line, T] = {key: self._recent[key] for key in keys if key in self._recent}
        if unknown := [key for key in keys if key not in found]:
            readings = {key[0] for key in unknown}
            found.update(await self._read(readings, lambda: {key: read(key) for key in unknown}))
        self._recent.update(found)
        return [found[key] for key in keys]

    def write_here(
        self,
        reading_id: UUID,
        pages: Sequence[Page],
        chunks: Sequence[Chunk],
        vectors: Vectors | None,
        figures: Sequence[Figure] = (),
    ) -> None:
        """Write a reading in the caller's thread, for a process without an event loop."""

        def fill(folder: Path) -> None:
            write_lines(folder / "pages", map(page_values, pages))
            write_lines(folder / "chunks", map(chunk_values, chunks))
            if figures:
                write_lines(folder / "figures", map(figure_values, figures))
            if vectors is not None:
                write_vectors(folder / "vectors.npy", vectors)

        with _translated_errors():
            write_folder_atomically(self._folder(reading_id), fill)

    def wordless_here(self, reading_id: UUID, first: int, end: int) -> list[Chunk]:
        """Return chunks ``first`` to ``end`` - 1 without their words, which are most of their size.

        Raises:
            LostReading: the reading has fewer, or its files are gone.
        """
        return [wordless_chunk(one) for one in self._some(reading_id, "chunks", first, end)]

    def figures_here(self, reading_id: UUID, first: int, end: int) -> list[Figure]:
        """Return figures ``first`` to ``end`` - 1; raise as ``wordless_here``."""
        return [figure_of(one) for one in self._some(reading_id, "figures", first, end)]

    def _some(self, reading_id: UUID, kind: str, first: int, end: int) -> list[Any]:
        if first >= end:
            return []
        with _translated_errors():
            try:
                return read_some(self._folder(reading_id) / kind, first, end)
            except LookupError as error:
                raise LostReading("the files of a reading are missing or corrupt") from error

    def _write_beside(
        self,
        reading_id: UUID,
        base: UUID,
        vectors: Vectors,
        figures: Sequence[Figure],
        sentences: Sequence[ChunkSentenceVectors],
    ) -> None:
        def fill(folder: Path) -> None:
            for name in SHARED:
                link_or_copy(self._folder(base) / name, folder / name)
            if figures:
                write_lines(folder / "figures", map(figure_values, figures))
            if sentences:
                write_lines(folder / "sentences", map(dump_sentence_vectors, sentences))
            write_vectors(folder / "vectors.npy", vectors)

        write_folder_atomically(self._folder(reading_id), fill)

    def _read_all(self, reading_id: UUID, kind: str, parse: Callable[[Any], T]) -> list[T]:
        return [parse(values) for values in read_lines(self._folder(reading_id) / kind)]

    def _count_words(self, reading_id: UUID) -> Counter[str]:
        return Counter(
            chain.from_iterable(map(alphabetic_words, self._read_all(reading_id, "chunks", searched_text)))
        )

    def _read_one(self, line: _Line, parse: Callable[[Any], T]) -> T:
        reading_id, kind, index = line
        (values,) = read_some(self._folder(reading_id) / kind, index, index + 1)
        return parse(values)

    def _read_sentences(self, line: _Line) -> ChunkSentenceVectors | None:
        folder = self._folder(line[0])
        # Without its folder the reading is lost, and the read below raises.
        if folder.exists() and not (folder / "sentences.index").exists():
            return None
        return self._read_one(line, parse_sentence_vectors)

    def _read_vectors(self, reading_id: UUID) -> Vectors | None:
        path = self._folder(reading_id) / "vectors.npy"
        # Without its folder the reading is lost, and the read below raises.
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
        raise LostReading("the files of a reading are missing or corrupt") from error
    except OSError as error:
        raise BlobsUnavailable(f"the files of a reading cannot be reached: {error.strerror}") from error
