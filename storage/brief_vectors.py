"""Vectors of length one in a byte a number, for those that there are many of and that are compared alone.

A vector is scaled so that its largest number is 127, and comes back to length one: its direction is all
that a cosine needs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BriefVectors = npt.NDArray[np.int8]
Vectors = npt.NDArray[np.float32]

LARGEST = 127


def shorten(vectors: Vectors) -> BriefVectors:
    """(texts, dimensions) vectors, none of them zero, in a byte a number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=np.float32(1e-12))
    brief: BriefVectors = np.rint(vectors * (LARGEST / largest)).astype(np.int8)
    return brief


def lengthen(vectors: BriefVectors) -> Vectors:
    """The same as float32, each of length one."""
    numbers = vectors.astype(np.float32)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: Vectors = numbers / np.maximum(lengths, np.float32(1e-12))
    return unit
