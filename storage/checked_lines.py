"""JSON values in a file, one a line behind its checksum, and an index of where each line begins.

One value is read without parsing the others; a byte that the disk changed is never taken for text.
"""

from __future__ import annotations

import json
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

CHECKSUM = 8
"""Characters of a line's CRC-32 in hex; a space follows."""


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
    """All values in order.

    Raises:
        ValueError: a line is damaged or missing.
    """
    if not has_lines(path, path.with_suffix(".index").stat().st_size // 8 - 1):
        raise ValueError("some lines are missing")
    with path.with_suffix(".lines").open("rb") as lines:
        for line in lines:
            yield _value(line)


def read_some(path: Path, first: int, end: int) -> list[Any]:
    """The values of lines ``first`` to ``end`` - 1, counted from 0.

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
    """Whether there are ``number`` lines that end where the index says the last one ends; none is read."""
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
