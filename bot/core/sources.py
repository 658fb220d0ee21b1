"""One source per cited page: what the buttons under an answer are, on every platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.core import wording
from bot.core.models import Answer, Citation, CitedPage


def cited_pages(answer: Answer) -> list[CitedPage]:
    """One source per cited (file, page), in the order of first use."""
    groups: dict[tuple[str, int], list[Citation]] = {}
    for citation in answer.citations:
        groups.setdefault((citation.file, citation.page), []).append(citation)
    names = _names(answer.citations)
    return [_cited_page(citations, names[file]) for (file, _), citations in groups.items()]


def split_sources(pages: Sequence[CitedPage], shown: int) -> tuple[list[CitedPage], list[CitedPage]]:
    """(pages that get a button of their own, pages behind one "N more sources" control)."""
    return list(pages[:shown]), list(pages[shown:])


def _cited_page(citations: Sequence[Citation], name: str) -> CitedPage:
    first = citations[0]
    return CitedPage(
        numbers=tuple(citation.number for citation in citations),
        label=wording.source_label(first.page, name),
        fallback=wording.page_of(first.page, PurePosixPath(first.file).name),
        url=first.url,
    )


def _names(citations: Sequence[Citation]) -> dict[str, str]:
    """File -> what people call it: its title, but file names where two files share a title."""
    titles = {citation.file: citation.title or PurePosixPath(citation.file).name for citation in citations}
    names = _unless_shared(titles, {file: PurePosixPath(file).name for file in titles})
    return _unless_shared(names, {file: file for file in titles})


def _unless_shared(names: dict[str, str], otherwise: dict[str, str]) -> dict[str, str]:
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {file: otherwise[file] if name in shared else name for file, name in names.items()}
