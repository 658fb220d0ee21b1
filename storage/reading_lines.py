"""How pages and chunks of a reading stand in its files: one JSON list a line, boxes as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storage.models import Box, Chunk, Page, PlacedWord

SCALE = 10_000
"""Boxes are kept as fractions of the displayed page times this."""


def page_values(page: Page) -> list[Any]:
    """A page as a line holds it."""
    return [page.number, page.label, page.width, page.height, page.text, _flat(page.words)]


def page_of(values: list[Any]) -> Page:
    """The page of a line."""
    number, label, width, height, text, words = values
    return Page(number, label, width, height, text, _placed(words))


def chunk_values(chunk: Chunk) -> list[Any]:
    """A chunk as a line holds it."""
    words = _flat(chunk.words)
    return [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]


def chunk_of(values: list[Any]) -> Chunk:
    """The chunk of a line."""
    ordinal, text, tokens, path, words, starts = values
    page_starts = tuple((offset, page) for offset, page in starts)
    return Chunk(ordinal, text, tokens, tuple(path), _placed(words), page_starts)


def text_of(values: list[Any]) -> str:
    """The text of a chunk's line."""
    text: str = values[1]
    return text


def wordless_chunk(values: list[Any]) -> Chunk:
    """The chunk of a line without its words."""
    return chunk_of([*values[:4], [], values[5]])


def _flat(words: Sequence[PlacedWord]) -> list[int]:
    """Eight whole numbers per word: half the size of nested lists, and parsed twice as fast."""
    flat: list[int] = []
    for start, end, page, line, (x0, y0, x1, y1) in words:
        flat += (
            start,
            end,
            page,
            line,
            round(x0 * SCALE),
            round(y0 * SCALE),
            round(x1 * SCALE),
            round(y1 * SCALE),
        )
    return flat


def _placed(flat: list[int]) -> tuple[PlacedWord, ...]:
    return tuple(
        PlacedWord(start, end, page, line, Box(x0 / SCALE, y0 / SCALE, x1 / SCALE, y1 / SCALE))
        for start, end, page, line, x0, y0, x1, y1 in zip(*[iter(flat)] * 8, strict=True)
    )
