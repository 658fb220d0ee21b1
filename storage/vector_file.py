"""The vectors of a reading in a file, as NumPy keeps them, with their checksum behind them."""

from __future__ import annotations

import io
import tokenize
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.checked_lines import sync

Vectors = npt.NDArray[np.float32]

CHECKSUM_BYTES = 4
"""Behind the vectors: their CRC-32."""


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
    """Whether there are as many vectors, and a checksum behind them; neither is read."""
    try:
        kept = np.load(path, "r")
    except tokenize.TokenError:  # from a header that is no header any more
        return False
    return len(kept) == number and path.stat().st_size == kept.offset + kept.nbytes + CHECKSUM_BYTES


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM_BYTES, "big")
