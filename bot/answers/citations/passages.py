"""Text of a search reply: passages under headings of document, page and section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.core.models import Citation
from bot.core.plaintext import escape_markers, shorten
from bot.core.wording import ReplyWords

MAX_NAME_CHARS, MAX_SECTION_CHARS = 200, 60


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A quote or a note in a search reply."""

    # Quote with its [n], or a note.
    text: str
    # Number of the citation that forms its heading.
    number: int
    # Date of its document, if it decides which document applies.
    day: str = ""
    # Stays under the previous heading, if there is one.
    is_reference: bool = False


def write_passages(
    text: str,
    passages: Iterable[ShownPassage],
    citations: Sequence[Citation],
    words: ReplyWords,
    notes: Sequence[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Write a text, then the passages grouped under one heading per place, then the notes.

    Returns (the written text, its headings).
    """
    places: list[list[str]] = []
    for one in passages:
        head = _heading(citations[one.number - 1], one.day, words)
        if not places or (places[-1][0] != head and not one.is_reference):
            places.append([head])
        places[-1].append(one.text)
    written = "\n\n".join(filter(None, (text, *map("\n".join, places), "\n".join(notes))))
    return written, tuple(head for head, *_ in places)


def _heading(citation: Citation, day: str, words: ReplyWords) -> str:
    name = shorten(escape_markers(citation.name or citation.title or citation.file), MAX_NAME_CHARS)
    if citation.host:
        return words.web_source(title=name, host=citation.host, day=citation.fetched[:10])
    page = words.page_label(citation.page, is_ocr=citation.is_ocr)
    section = shorten(escape_markers(citation.section[-1]), MAX_SECTION_CHARS) if citation.section else ""
    if section.casefold() == name.casefold():
        section = ""
    return " · ".join(filter(None, (f"{name}, {page}", section, day)))
