"""The files of a reading: JSON values behind checksums, an index of their lines, and vectors.

Pages, chunks and figures are one JSON list a line, word maps packed: one value is read without parsing the
others, and a byte that the disk changed is never taken for text. Vectors are kept as NumPy keeps them, with
their checksum behind them. A folder of files appears whole and durable, or not at all.
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

# Characters of a line's CRC-32 in hex; a space follows.
CHECKSUM = 8

Vectors = npt.NDArray[np.float32]

# Behind the vectors: their CRC-32.
CHECKSUM_BYTES = 4


def page_values(page: Page) -> list[Any]:
    """Return a page as a line holds it."""
    return [page.number, page.label, page.width, page.height, page.text, WordMap.of(page.words).to_text()]


def page_of(values: list[Any]) -> Page:
    """Return the page of a line."""
    number, label, width, height, text, words = values
    return Page(number, label, width, height, text, WordMap.from_text(words))


def chunk_values(chunk: Chunk) -> list[Any]:
    """Return a chunk as a line holds it."""
    words = WordMap.of(chunk.words).to_text()
    kept = [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]
    return kept if chunk.sections == ((0, chunk.heading_path),) else [*kept, chunk.sections]


def chunk_of(values: list[Any]) -> Chunk:
    """Return the chunk of a line."""
    ordinal, text, tokens, path, words, starts, *more = values
    page_starts = tuple((offset, page) for offset, page in starts)
    sections = tuple((offset, tuple(above)) for offset, above in (more[0] if more else ()))
    return Chunk(ordinal, text, tokens, tuple(path), WordMap.from_text(words), page_starts, sections)


def text_of(values: list[Any]) -> str:
    """Return the text of a chunk's line."""
    text: str = values[1]
    return text


def page_text_of(values: list[Any]) -> str:
    """Return the text of a page's line."""
    text: str = values[4]
    return text


def sections_of(values: list[Any]) -> list[tuple[tuple[str, ...], int]]:
    """(headings, page where it begins) of each section of a chunk's line."""
    chunk = wordless_chunk(values)
    return [(path, chunk.page_at(start)) for start, path in chunk.sections]


def searched_text(values: list[Any]) -> str:
    """Headings and text of a chunk's line."""
    return " ".join((*values[3], values[1]))


def wordless_chunk(values: list[Any]) -> Chunk:
    """Return the chunk of a line without its words."""
    return chunk_of([*values[:4], "", *values[5:]])


def figure_values(figure: Figure) -> list[Any]:
    """Return a figure as a line holds it."""
    return list(astuple(figure))


def figure_of(values: list[Any]) -> Figure:
    """Return the figure of a line."""
    page, box, kind, holds_data, chunk, path, *texts = values
    return Figure(page, Box(*box), FigureKind(kind), holds_data, chunk, tuple(path), *texts)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write ``path``.lines, and ``path``.index: where each line begins, and the last one ends."""
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
        ValueError: a line is damaged or missing.
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
        ValueError: one of them is damaged.
    """
    with path.with_suffix(".index").open("rb") as starts:
        begin, stop = _bounds(starts, first)[0], _bounds(starts, end - 1)[1]
    with path.with_suffix(".lines").open("rb") as lines:
        is_inside = begin <= stop <= os.fstat(lines.fileno()).st_size
        found = os.pread(lines.fileno(), stop - begin, begin).splitlines() if is_inside else []
    if len(found) != end - first:
        raise ValueError("the index of the lines is damaged")
    return [_value(line) for line in found]


def has_lines(path: Path, number: int) -> bool:
    """True if there are ``number`` lines that end where the index says the last one ends; none is read."""
    with path.with_suffix(".index").open("rb") as starts:
        end = _bounds(starts, number - 1)[1] if number else 0
        is_as_long = path.with_suffix(".lines").stat().st_size == end
        return is_as_long and os.fstat(starts.fileno()).st_size == 8 * (number + 1)


def sync(file: IO[bytes]) -> None:
    """Have the disk keep what was written."""
    file.flush()
    os.fsync(file.fileno())


def _value(line: bytes) -> Any:
    data = line[CHECKSUM + 1 :].rstrip(b"\n")
    if int(line[:CHECKSUM], 16) != zlib.crc32(data):
        raise ValueError("a line does not match its checksum")
    return json.loads(data)


def _bounds(index: IO[bytes], number: int) -> tuple[int, int]:
    """Where line ``number`` begins and ends."""
    data = os.pread(index.fileno(), 16, number * 8) if number >= 0 else b""
    if len(data) < 16:
        raise LookupError(f"there is no line {number}")
    start, end = array("Q", data)
    return start, end


def write_vectors(path: Path, vectors: Vectors) -> None:
    """An array, and after it its checksum."""
    kept = io.BytesIO()
    np.save(kept, np.asarray(vectors, dtype=np.float32), allow_pickle=False)
    with path.open("wb") as file:
        file.write(kept.getbuffer())
        file.write(_checksum(kept.getbuffer()))
        sync(file)


def read_vectors(path: Path) -> Vectors:
    """What ``write_vectors`` wrote.

    Raises:
        ValueError: a byte of it has changed.
    """
    data = path.read_bytes()
    if data[-CHECKSUM_BYTES:] != _checksum(data[:-CHECKSUM_BYTES]):
        raise ValueError("the vectors do not match their checksum")
    loaded: Vectors = np.load(io.BytesIO(data), allow_pickle=False)
    return loaded


def has_vectors(path: Path, number: int) -> bool:
    """True if there are as many vectors, and a checksum behind them; neither is read."""
    try:
        kept = np.load(path, "r")
    except tokenize.TokenError:  # from a header that is no header any more
        return False
    return len(kept) == number and path.stat().st_size == kept.offset + kept.nbytes + CHECKSUM_BYTES


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM_BYTES, "big")


def keep_folder(final: Path, fill: Callable[[Path], None]) -> None:
    """Have ``fill`` write a folder's files, each of them synchronised, and put it in its place.

    One that is there already is replaced; when ``fill`` fails, nothing has changed.
    """
    temporary = final.with_name(f".{final.name}.{uuid4().hex}")
    temporary.mkdir(parents=True)
    try:
        fill(temporary)
        _sync_folder(temporary)
        _put_in_place(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def share_file(file: Path, target: Path) -> None:
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
