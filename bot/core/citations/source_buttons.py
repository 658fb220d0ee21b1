"""One source per cited page: what the buttons under an answer are, on every platform."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from bot.core.citations.web_links import marking_all
from bot.core.models import Answer, AnswerFigure, Citation, CitedPage
from bot.core.plaintext import shorten_middle
from bot.core.wording import ReplyWords, reply_words

MAX_HOST_CHARS = 28
"""Of a host in a label: of the 75 characters that Slack and Teams show, the day behind it needs its part."""
Key = TypeVar("Key", bound=Hashable)
_Document = tuple[str, int]
"""Path and version: two folders of one channel may each hold a file of the same path."""


def cited_pages(answer: Answer) -> list[CitedPage]:
    """One source per cited page of one document, in the order of first use."""
    groups: dict[tuple[_Document, int], list[Citation]] = {}
    for citation in answer.citations:
        groups.setdefault((_document(citation), citation.page), []).append(citation)
    words, names = reply_words(answer.language), _names(answer.citations)
    return [
        CitedPage(
            numbers=tuple(citation.number for citation in citations),
            label=_label(words, names[document], citations[0]),
            fallback=_fallback(words, citations[0]),
            url=marking_all([one.url for one in citations]) if citations[0].host else citations[0].url,
        )
        for (document, _), citations in groups.items()
    ]


def _label(words: ReplyWords, name: str, citation: Citation) -> str:
    """A web page is marked as such, with its host and the day on which it was read."""
    label = words.source_label(citation.page, name, is_ocr=citation.is_ocr) if citation.page else name
    return _on_the_web(words, label, citation) if citation.host else label


def _on_the_web(words: ReplyWords, label: str, citation: Citation) -> str:
    """The end of a host says whose it is: a long one loses its middle, that the day stays on the button."""
    host = shorten_middle(citation.host, MAX_HOST_CHARS)
    return words.web_source(title=label, host=host, day=citation.fetched[:10])


def _fallback(words: ReplyWords, citation: Citation) -> str:
    if citation.host:
        return _label(words, citation.title, citation)
    return words.page_of(page=citation.page, file=PurePosixPath(citation.file).name)


def figure_pages(answer: Answer, longest: int) -> list[CitedPage]:
    """One source per figure of an answer; in a label of ``longest`` characters the page is never cut off."""
    words = reply_words(answer.language)
    return [
        CitedPage(
            numbers=(),
            label=words.figure_label(_caption_within(words, figure, longest), figure.page),
            fallback=words.figure_label(figure.caption, figure.page),
            url=figure.url,
        )
        for figure in answer.figures
    ]


def _caption_within(words: ReplyWords, figure: AnswerFigure, longest: int) -> str:
    """A caption as far as it leaves room for the rest of its label; cut words could turn into links."""
    room = longest - len(words.figure_label("…", figure.page))
    caption = " ".join(figure.caption.split())
    return caption if len(caption) <= room else f"{caption[:room].rpartition(' ')[0]}…"


def opened_pages(answer: Answer) -> list[CitedPage]:
    """The cited pages; where nothing is cited, the page that came nearest."""
    near = answer.nearest
    if near is None or answer.citations:
        return cited_pages(answer)
    words, name = reply_words(answer.language), PurePosixPath(near.file).name
    label = words.source_label(near.page, name)
    return [CitedPage((), label, words.page_of(page=near.page, file=name), near.url)]


def split_sources(pages: Sequence[CitedPage], shown: int) -> tuple[list[CitedPage], list[CitedPage]]:
    """(pages that get a button of their own, pages behind one "N more sources" control)."""
    return list(pages[:shown]), list(pages[shown:])


def _document(citation: Citation) -> _Document:
    return citation.file, citation.version_id


def _names(citations: Sequence[Citation]) -> dict[_Document, str]:
    called = {_document(one): (one.title, one.edition, one.file) for one in citations}
    return distinct_names(called)


def distinct_names(documents: Mapping[Key, tuple[str, str, str]]) -> dict[Key, str]:
    """What people call each of these (title, edition, file): its title, its file where two share one."""
    files = {key: PurePosixPath(file) for key, (_, _, file) in documents.items()}
    titles = {}
    for key, (title, edition, _) in documents.items():
        name = title or files[key].name
        titles[key] = f"{name} ({edition})" if edition else name
    names = _unless_shared(titles, {key: file.name for key, file in files.items()})
    return _unless_shared(names, {key: str(file) for key, file in files.items()})


def _unless_shared(names: Mapping[Key, str], otherwise: Mapping[Key, str]) -> dict[Key, str]:
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {key: otherwise[key] if name in shared else name for key, name in names.items()}
