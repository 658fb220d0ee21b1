"""Int8 vectors of the quotable parts of chunks, and their JSON form in a reading's file.

Each vector is scaled so that its largest component is 127. The scale is not stored: vectors are
L2-normalised on reading, because a cosine needs only the direction.
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

# (start, end) offsets in a chunk's text.
TextRange = tuple[int, int]
Vector = npt.NDArray[np.float32]


def quantize(vectors: Vectors) -> Int8Vectors:
    """Return nonzero vectors of shape (texts, dimensions) as int8."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=np.float32(1e-12))
    brief: Int8Vectors = np.rint(vectors * (MAX_INT8 / largest)).astype(np.int8)
    return brief


def dequantize(vectors: Int8Vectors) -> Vectors:
    """Return the vectors as float32, L2-normalised."""
    numbers = vectors.astype(np.float32)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: Vectors = numbers / np.maximum(lengths, np.float32(1e-12))
    return unit


@dataclass(frozen=True, slots=True)
class ChunkSentenceVectors:
    """Vectors of the quotable parts of a chunk's text."""

    # Vector space; vectors of different spaces must not be compared.
    space: str
    # CRC-32 of the text that ``spans`` refer to.
    text_checksum: int
    spans: tuple[TextRange, ...]
    # Shape (spans, dimensions).
    vectors: Int8Vectors

    @classmethod
    def create(
        cls, space: str, text: str, spans: Sequence[TextRange], vectors: Int8Vectors
    ) -> ChunkSentenceVectors:
        """Return the vectors of the parts ``spans`` of ``text``."""
        return cls(space, _checksum(text), tuple(spans), vectors)

    def matches(self, space: str, text: str) -> bool:
        """True if the vectors are of this space, and their spans refer to this text."""
        return (space, _checksum(text)) == (self.space, self.text_checksum)


def by_span(chunks: Sequence[ChunkSentenceVectors | None]) -> list[Mapping[TextRange, Vector]]:
    """Return the vectors of each chunk by span, all of one space; {} for None.

    All are dequantized in one call: per chunk, call overhead exceeds the computation.
    """
    kept = [one.vectors for one in chunks if one and one.spans]
    ends = np.cumsum([len(vectors) for vectors in kept])
    vectors = iter(np.split(dequantize(np.concatenate(kept)), ends[:-1]) if kept else ())
    return [dict(zip(one.spans, next(vectors), strict=True)) if one and one.spans else {} for one in chunks]


def dump_sentence_vectors(sentences: ChunkSentenceVectors) -> list[Any]:
    """Return the JSON form of a chunk's vectors."""
    data = base64.b64encode(sentences.vectors.tobytes()).decode()
    return [sentences.space, sentences.text_checksum, sentences.spans, data]


def parse_sentence_vectors(values: list[Any]) -> ChunkSentenceVectors:
    """Parse ``dump_sentence_vectors``."""
    space, text_checksum, spans, data = values
    numbers = np.frombuffer(base64.b64decode(data), dtype=np.int8)
    vectors = numbers.reshape(len(spans), -1) if spans else numbers.reshape(0, 0)
    return ChunkSentenceVectors(space, text_checksum, tuple((start, end) for start, end in spans), vectors)


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())
