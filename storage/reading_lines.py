"""How pages, chunks and figures of a reading stand in its files: one JSON list a line, word maps packed."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from storage.figure_models import Figure, FigureKind
from storage.models import Box, Chunk, Page
from storage.word_map import WordMap


def page_values(page: Page) -> list[Any]:
    """A page as a line holds it."""
    return [page.number, page.label, page.width, page.height, page.text, WordMap.of(page.words).to_text()]


def page_of(values: list[Any]) -> Page:
    """The page of a line."""
    number, label, width, height, text, words = values
    return Page(number, label, width, height, text, WordMap.from_text(words))


def chunk_values(chunk: Chunk) -> list[Any]:
    """A chunk as a line holds it."""
    words = WordMap.of(chunk.words).to_text()
    return [chunk.ordinal, chunk.text, chunk.tokens, chunk.heading_path, words, chunk.page_starts]


def chunk_of(values: list[Any]) -> Chunk:
    """The chunk of a line."""
    ordinal, text, tokens, path, words, starts = values
    page_starts = tuple((offset, page) for offset, page in starts)
    return Chunk(ordinal, text, tokens, tuple(path), WordMap.from_text(words), page_starts)


def text_of(values: list[Any]) -> str:
    """The text of a chunk's line."""
    text: str = values[1]
    return text


def wordless_chunk(values: list[Any]) -> Chunk:
    """The chunk of a line without its words."""
    return chunk_of([*values[:4], "", values[5]])


def figure_values(figure: Figure) -> list[Any]:
    """A figure as a line holds it."""
    return list(astuple(figure))


def figure_of(values: list[Any]) -> Figure:
    """The figure of a line."""
    page, box, kind, holds_data, chunk, path, *texts = values
    return Figure(page, Box(*box), FigureKind(kind), holds_data, chunk, tuple(path), *texts)
