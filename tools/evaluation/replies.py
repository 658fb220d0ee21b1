"""Replies of the bot or of a baseline, in the form that measures use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.evaluation.golden import Page


@dataclass(frozen=True, slots=True)
class Mark:
    """A quote with its rectangles, as fractions of the displayed page."""

    page: Page
    quote: str
    boxes: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """Result of one question."""

    # Pages found, best first, without duplicates.
    ranked: tuple[Page, ...]
    state: str = "grounded"
    text: str = ""
    # Citations, by number.
    marks: tuple[Mark, ...] = ()
    # Page linked by a plain no.
    nearest: Page | None = None
    figures: tuple[Page, ...] = ()
    milliseconds: int = 0

    @property
    def cited(self) -> tuple[Page, ...]:
        """Cited pages, without duplicates."""
        return once(mark.page for mark in self.marks)

    @property
    def is_claimed(self) -> bool:
        """True if it claims that the documents answer; passages claim nothing."""
        return self.state in {"grounded", "partial"}

    @property
    def is_sourced(self) -> bool:
        """True if it shows pages: an answer, or passages."""
        return self.is_claimed or self.state == "passages"

    @property
    def offered(self) -> tuple[Page, ...]:
        """Pages offered to the person: the cited ones and the nearest."""
        return once([*self.cited, *([self.nearest] if self.nearest else ())])


def once(pages: Iterable[Page]) -> tuple[Page, ...]:
    """Return pages in order of first occurrence."""
    return tuple(dict.fromkeys(pages))


def read_reply(line: Mapping[str, Any]) -> Reply:
    """Parse one line of ``footnote ask --json``."""
    return Reply(
        ranked=once(page for passage in line["passages"] for page in _span(passage)),
        state=line["state"],
        text=line["text"],
        marks=tuple(_mark(citation) for citation in line["citations"]),
        nearest=_page(line["nearest"]) if line["nearest"] else None,
        figures=tuple(_page(figure) for figure in line["figures"]),
        milliseconds=line["milliseconds"]["total"],
    )


def _span(passage: Mapping[str, Any]) -> Sequence[Page]:
    name = _name(passage["file"])
    return [(name, page) for page in range(passage["page"], passage["last_page"] + 1)]


def _mark(citation: Mapping[str, Any]) -> Mark:
    boxes = tuple(tuple(box) for box in citation["boxes"])
    return Mark(_page(citation), citation["quote"], boxes)


def _page(shown: Mapping[str, Any]) -> Page:
    return _name(shown["file"]), shown["page"]


def _name(file: str) -> str:
    return file.rpartition("/")[2]
