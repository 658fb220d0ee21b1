"""The vectors of what may be quoted from a chunk, as a line of a reading's file holds them: a byte a number.

A vector is scaled so that its largest number is 127, and comes back to length one: its direction is all that
a cosine needs.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int8Vectors = npt.NDArray[np.int8]
Vectors = npt.NDArray[np.float32]

MAX_INT8 = 127

# (start, end) of a part of a chunk's text.
TextRange = tuple[int, int]
Vector = npt.NDArray[np.float32]


def quantize(vectors: Vectors) -> Int8Vectors:
    """(texts, dimensions) vectors, none of them zero, in a byte a number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=np.float32(1e-12))
    brief: Int8Vectors = np.rint(vectors * (MAX_INT8 / largest)).astype(np.int8)
    return brief


def dequantize(vectors: Int8Vectors) -> Vectors:
    """Return the same as float32, each of length one."""
    numbers = vectors.astype(np.float32)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: Vectors = numbers / np.maximum(lengths, np.float32(1e-12))
    return unit


@dataclass(frozen=True, slots=True)
class ChunkSentenceVectors:
    """One vector per quotable part of a chunk's text."""

    # Where they lie: those of two spaces are never compared.
    space: str
    # CRC-32 of the text that ``spans`` count in.
    text_checksum: int
    spans: tuple[TextRange, ...]
    # Shape (spans, dimensions).
    vectors: Int8Vectors

    @classmethod
    def of(
        cls, space: str, text: str, spans: Sequence[TextRange], vectors: Int8Vectors
    ) -> ChunkSentenceVectors:
        """Those of the parts ``spans`` of ``text``."""
        return cls(space, _checksum(text), tuple(spans), vectors)

    def is_of(self, space: str, text: str) -> bool:
        """True if they lie in this space, and their spans count in this text."""
        return (space, _checksum(text)) == (self.space, self.text_checksum)


def by_span(chunks: Sequence[ChunkSentenceVectors | None]) -> list[Mapping[TextRange, Vector]]:
    """Return the vectors of each chunk, all of one space, by their parts' places; {} for None.

    All are lengthened at once: one by one, the calls take longer than the numbers.
    """
    kept = [one.vectors for one in chunks if one and one.spans]
    ends = np.cumsum([len(vectors) for vectors in kept])
    vectors = iter(np.split(dequantize(np.concatenate(kept)), ends[:-1]) if kept else ())
    return [dict(zip(one.spans, next(vectors), strict=True)) if one and one.spans else {} for one in chunks]


def sentence_values(sentences: ChunkSentenceVectors) -> list[Any]:
    """Return the vectors of a chunk as a line holds them."""
    data = base64.b64encode(sentences.vectors.tobytes()).decode()
    return [sentences.space, sentences.text_checksum, sentences.spans, data]


def sentences_of(values: list[Any]) -> ChunkSentenceVectors:
    """Return the vectors of a line."""
    space, text_checksum, spans, data = values
    numbers = np.frombuffer(base64.b64decode(data), dtype=np.int8)
    vectors = numbers.reshape(len(spans), -1) if spans else numbers.reshape(0, 0)
    return ChunkSentenceVectors(space, text_checksum, tuple((start, end) for start, end in spans), vectors)


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())
