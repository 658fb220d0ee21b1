"""File format of a reading: checksummed JSON lines, an index of the lines, and vectors.

Pages, chunks and figures are one JSON list per line, with packed word maps: a value is read without parsing
the others, and a corrupt byte is never taken for text. Vectors are in NumPy's format, followed by their
checksum. A folder of files appears complete and durable, or not at all.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tokenize
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from storage.models import Box, Chunk, Figure, FigureKind, Page
from storage.text.word_boxes import WordMap

# Length of a line's CRC-32 in hexadecimal digits; a space follows.
CHECKSUM = 8

Vectors = npt.NDArray[np.float32]

# Length of the CRC-32 after the vectors.
CHECKSUM_BYTES = 4


def page_values(page: Page) -> list[Any]:
    """Serialize a page for a line."""
    return [page.number, page.label, page.width, page.height, page.text, WordMap.pack(page.words).to_base64()]


def page_of(values: list[Any]) -> Page:
    """Parse a page from a line."""
    number, label, width, height, text, words = values
    return Page(number, label, width, height, text, WordMap.from_base64(words))


def chunk_values(chunk: Chunk) -> list[Any]:
    """Serialize a chunk for a line."""
    words = WordMap.pack(chunk.words).to_base64()
    kept = [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]
    return kept if chunk.sections == ((0, chunk.heading_path),) else [*kept, chunk.sections]


def chunk_of(values: list[Any]) -> Chunk:
    """Parse a chunk from a line."""
    ordinal, text, tokens, path, words, starts, *more = values
    page_starts = tuple((offset, page) for offset, page in starts)
    sections = tuple((offset, tuple(above)) for offset, above in (more[0] if more else ()))
    return Chunk(ordinal, text, tokens, tuple(path), WordMap.from_base64(words), page_starts, sections)


def page_text_of(values: list[Any]) -> str:
    """Return the text in a page's line."""
    text: str = values[4]
    return text


def sections_of(values: list[Any]) -> list[tuple[tuple[str, ...], int]]:
    """Return (headings, first page) of each section in a chunk's line."""
    chunk = wordless_chunk(values)
    return [(path, chunk.page_at(start)) for start, path in chunk.sections]


def searched_text(values: list[Any]) -> str:
    """Return headings and text of a chunk's line, joined."""
    return " ".join((*values[3], values[1]))


def wordless_chunk(values: list[Any]) -> Chunk:
    """Parse a chunk from a line, without its words."""
    return chunk_of([*values[:4], "", *values[5:]])


def figure_values(figure: Figure) -> list[Any]:
    """Serialize a figure for a line."""
    return list(astuple(figure))


def figure_of(values: list[Any]) -> Figure:
    """Parse a figure from a line."""
    page, box, kind, holds_data, chunk, path, *texts = values
    return Figure(page, Box(*box), FigureKind(kind), holds_data, chunk, tuple(path), *texts)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write ``path``.lines, and the offsets of all lines and of the end to ``path``.index."""
    starts = array("Q", [0])
    with path.with_suffix(".lines").open("wb") as lines:
        for value in values:
            data = json.dumps(value, separators=(",", ":")).encode()
            lines.write(b"%08x %s\n" % (zlib.crc32(data), data))
            starts.append(lines.tell())
        sync(lines)
    with path.with_suffix(".index").open("wb") as index:
        starts.tofile(index)
        sync(index)


def read_lines(path: Path) -> Iterator[Any]:
    """Yield all values in order.

    Raises:
        ValueError: a line is corrupt or missing.
    """
    if not has_lines(path, path.with_suffix(".index").stat().st_size // 8 - 1):
        raise ValueError("some lines are missing")
    with path.with_suffix(".lines").open("rb") as lines:
        for line in lines:
            yield _value(line)


def read_some(path: Path, first: int, end: int) -> list[Any]:
    """Return the values of lines ``first`` to ``end`` - 1, counted from 0.

    Raises:
        LookupError: there are fewer lines.
        ValueError: one of them is corrupt.
    """
    with path.with_suffix(".index").open("rb") as starts:
        begin, stop = _bounds(starts, first)[0], _bounds(starts, end - 1)[1]
    with path.with_suffix(".lines").open("rb") as lines:
        # A corrupt index may point outside the file.
        is_inside = begin <= stop <= os.fstat(lines.fileno()).st_size
        found = os.pread(lines.fileno(), stop - begin, begin).splitlines() if is_inside else []
    if len(found) != end - first:
        raise ValueError("the index of the lines is damaged")
    return [_value(line) for line in found]


def has_lines(path: Path, number: int) -> bool:
    """True if there are ``number`` lines and the file ends where the index says; reads no line."""
    with path.with_suffix(".index").open("rb") as starts:
        end = _bounds(starts, number - 1)[1] if number else 0
        is_as_long = path.with_suffix(".lines").stat().st_size == end
        return is_as_long and os.fstat(starts.fileno()).st_size == 8 * (number + 1)


def sync(file: IO[bytes]) -> None:
    """Flush the file to the disk (fsync)."""
    file.flush()
    os.fsync(file.fileno())


def _value(line: bytes) -> Any:
    data = line[CHECKSUM + 1 :].rstrip(b"\n")
    if int(line[:CHECKSUM], 16) != zlib.crc32(data):
        raise ValueError("a line does not match its checksum")
    return json.loads(data)


def _bounds(index: IO[bytes], number: int) -> tuple[int, int]:
    """Return the offsets at which line ``number`` begins and ends."""
    data = os.pread(index.fileno(), 16, number * 8) if number >= 0 else b""
    if len(data) < 16:
        raise LookupError(f"there is no line {number}")
    start, end = array("Q", data)
    return start, end


def write_vectors(path: Path, vectors: Vectors) -> None:
    """Write an array, followed by its checksum."""
    kept = io.BytesIO()
    np.save(kept, np.asarray(vectors, dtype=np.float32), allow_pickle=False)
    with path.open("wb") as file:
        file.write(kept.getbuffer())
        file.write(_checksum(kept.getbuffer()))
        sync(file)


def read_vectors(path: Path) -> Vectors:
    """Read an array written by ``write_vectors``.

    Raises:
        ValueError: a byte of it has changed.
    """
    data = path.read_bytes()
    if data[-CHECKSUM_BYTES:] != _checksum(data[:-CHECKSUM_BYTES]):
        raise ValueError("the vectors do not match their checksum")
    loaded: Vectors = np.load(io.BytesIO(data), allow_pickle=False)
    return loaded


def has_vectors(path: Path, number: int) -> bool:
    """True if there are ``number`` vectors followed by a checksum; reads neither."""
    try:
        kept = np.load(path, "r")
    except tokenize.TokenError:  # raised by NumPy for a corrupt header
        return False
    return len(kept) == number and path.stat().st_size == kept.offset + kept.nbytes + CHECKSUM_BYTES


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM_BYTES, "big")


def write_folder_atomically(final: Path, fill: Callable[[Path], None]) -> None:
    """Atomically create or replace a folder whose files ``fill`` writes and fsyncs.

    If ``fill`` fails, nothing changes.
    """
    temporary = final.with_name(f".{final.name}.{uuid4().hex}")
    temporary.mkdir(parents=True)
    try:
        fill(temporary)
        _sync_folder(temporary)
        _rename_into_place(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def link_or_copy(file: Path, target: Path) -> None:
    """Hard-link a file, or copy it where links are not supported.

    Sharing is safe: files never change, and each name may be removed.
    """
    try:
        os.link(file, target)
    except OSError:  # the file system has no hard links
        shutil.copyfile(file, target)
        with target.open("rb") as copy:
            os.fsync(copy.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename_into_place(temporary: Path, final: Path) -> None:
    """Rename a folder into place, then fsync; an older one, left by a repeated step, is moved aside first."""
    if final.exists():
        aside = final.with_name(f"{temporary.name}.old")
        final.rename(aside)
        temporary.rename(final)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        temporary.rename(final)
    _sync_folder(final.parent)
    # The parent folder may be new, so its entry is synced, too.
    _sync_folder(final.parent.parent)
