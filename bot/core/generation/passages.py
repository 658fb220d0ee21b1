"""Text of a search's passages: each under its document, page and section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.models import Citation
from bot.core.plaintext import inert, shorten
from bot.core.wording import ReplyWords

MAX_SECTION_CHARS = 60

# Headings of a box, which say nothing of the section that it stands in.
BOX_HEADINGS = frozenset("warning caution note notice important danger attention tip".split())


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A line of a search's reply."""

    text: str
    """Quote with its [n], or a note."""
    number: int = 0
    """Citation that heads it; 0: it stays under the heading before it."""
    day: str = ""
    """Day of its document, where that decides what counts."""


def write_passages(passages: Iterable[ShownPassage], citations: Sequence[Citation], words: ReplyWords) -> str:
    """Write the lines, those of one place under one heading."""
    places: list[list[str]] = []
    for one in passages:
        head = _heading(citations[one.number - 1], one.day, words) if one.number else places[-1][0]
        if not places or places[-1][0] != head:
            places.append([head])
        places[-1].append(one.text)
    return "\n\n".join(map("\n".join, places))


def section_of(path: Sequence[str], name: str) -> str:
    """Return the innermost heading that is no box's; '' where that is the document's name."""
    headings = [inert(one) for one in path]
    known = (one for one in reversed(headings) if one.strip(" :!.").casefold() not in BOX_HEADINGS)
    section = next(known, "")
    return "" if section.casefold() == name.casefold() else section


def _heading(citation: Citation, day: str, words: ReplyWords) -> str:
    name = inert(citation.name or citation.title or citation.file)
    if citation.host:
        return words.web_source(title=name, host=citation.host, day=citation.fetched[:10])
    page = words.page_label(citation.page, is_ocr=citation.is_ocr)
    section = shorten(section_of(citation.section, name), MAX_SECTION_CHARS)
    return " · ".join(filter(None, (f"{name}, {page}", section, day)))
