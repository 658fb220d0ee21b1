"""What came back for a question, from us or from a baseline, in the form that measures take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.evaluation.golden import Page


@dataclass(frozen=True, slots=True)
class Mark:
    """A quote and the rectangles it was marked with, as shares of the displayed page."""

    page: Page
    quote: str
    boxes: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One question's result."""

    # Pages found, best first, each once.
    ranked: tuple[Page, ...]
    state: str = "grounded"
    text: str = ""
    # The citations, by number.
    marks: tuple[Mark, ...] = ()
    # The page that a plain no links.
    nearest: Page | None = None
    figures: tuple[Page, ...] = ()
    milliseconds: int = 0

    @property
    def cited(self) -> tuple[Page, ...]:
        """Cited pages, each once."""
        return once(mark.page for mark in self.marks)

    @property
    def is_claimed(self) -> bool:
        """It says that the documents answer; passages claim nothing."""
        return self.state in {"grounded", "partial"}

    @property
    def is_sourced(self) -> bool:
        """It shows pages: an answer, or passages."""
        return self.is_claimed or self.state == "passages"

    @property
    def offered(self) -> tuple[Page, ...]:
        """Pages that a person is offered: the cited ones, and the nearest."""
        return once([*self.cited, *([self.nearest] if self.nearest else ())])


def once(pages: Iterable[Page]) -> tuple[Page, ...]:
    """Pages in order of first occurrence."""
    return tuple(dict.fromkeys(pages))


def read_reply(line: Mapping[str, Any]) -> Reply:
    """One line of ``footnote ask --json``."""
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
