"""Vectors of length one in a byte a number, for those that there are many of and that are compared alone.

A vector is scaled so that its largest number is 127, and comes back to length one: its direction is all
that a cosine needs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int8Vectors = npt.NDArray[np.int8]
Vectors = npt.NDArray[np.float32]

MAX_INT8 = 127


def quantize(vectors: Vectors) -> Int8Vectors:
    """(texts, dimensions) vectors, none of them zero, in a byte a number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=np.float32(1e-12))
    brief: Int8Vectors = np.rint(vectors * (MAX_INT8 / largest)).astype(np.int8)
    return brief


def dequantize(vectors: Int8Vectors) -> Vectors:
    """The same as float32, each of length one."""
    numbers = vectors.astype(np.float32)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: Vectors = numbers / np.maximum(lengths, np.float32(1e-12))
    return unit
