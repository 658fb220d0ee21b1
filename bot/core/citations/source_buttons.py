"""One source per cited page: what the buttons under an answer are, on every platform.

A label begins with the numbers of the page's quotes and the page itself, which nothing ever cuts off. Behind
them stand the document's name, the section, and as much of what the document says of itself as has room.
Where no button of ours could be opened, sources are lines of the text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, TypeVar

from bot.core.citations.web_links import marking_all
from bot.core.models import Answer, AnswerFigure, Citation, CitedPage, Language, Question
from bot.core.plaintext import shorten, shorten_middle, tame
from bot.core.ports import Announcement, Announcer, AnswerListener, NoteWriter, QuestionAnswering
from bot.core.wording import ReplyWords, reply_words
from storage.models import Channel, TenantName

# What a button of Slack holds; those of Teams say the same.
LABEL_CHARS = 75
PICTURE_TITLE_CHARS, ALT_TEXT_CHARS = 300, 1000
# Numbers of a page that are marked one by one; of more, those that follow each other are a range.
MARKS_LISTED = 6
# So much of a label a name has at least; names that look alike in it are told apart.
NAME_CHARS = 30
# So much of a label a section may claim beside a long name.
SECTION_CHARS = 24
# Beside the name of a web page, where nothing else limits them.
FALLBACK_CHARS = 500
# Of a host, and of its end, which says whose it is: the day behind it needs its part of a label.
MAX_HOST_CHARS, HOST_END_CHARS = 28, 18
# Of the name of a channel, where a direct chat is answered from one.
CHANNEL_CHARS = 24
# A name or a section of which less has room is left out.
MIN_CHARS = 8

Key = TypeVar("Key", bound=Hashable)
# Path and version: two folders of one channel may each hold a file of the same path.
_Document = tuple[str, int]


def cited_pages(answer: Answer, longest: int = LABEL_CHARS) -> list[CitedPage]:
    """One source per cited page of one document, in the order of first use.

    A label and its numbers have ``longest`` characters at most.
    """
    groups: dict[tuple[_Document, int], list[Citation]] = {}
    for citation in answer.citations:
        groups.setdefault((_document(citation), citation.page), []).append(citation)
    words, names = reply_words(answer.language), _names(answer.citations)
    channel = _channel(answer)
    return [
        CitedPage(
            numbers=(numbers := tuple(citation.number for citation in citations)),
            label=_label(words, names[document], citations, longest - len(marks_of(numbers)) - 1, channel),
            fallback=_joined(_fallback(words, names[document], citations), channel),
            url=marking_all([one.url for one in citations]) if citations[0].host else citations[0].url,
        )
        for (document, _), citations in groups.items()
    ]


def numbered(page: CitedPage, text: str) -> str:
    """Return a page's label or fallback behind its numbers: ``[1][3] p. 4 · Handbook``."""
    return f"{marks_of(page.numbers)} {text}" if page.numbers else text


def marks_of(numbers: Sequence[int]) -> str:
    """Numbers as the text marks them: ``[1][3]``; of many ``[1-4,7]``."""
    if len(numbers) <= MARKS_LISTED:
        return "".join(f"[{number}]" for number in numbers)
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return f"[{','.join(str(first) if first == last else f'{first}-{last}' for first, last in ranges)}]"


def _channel(answer: Answer) -> str:
    """What a source of an answer says of its channel."""
    return shorten_middle(tame(answer.channel_name), CHANNEL_CHARS)


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))


def _label(
    words: ReplyWords, name: str, citations: Sequence[Citation], longest: int, channel: str = ""
) -> str:
    """Page and channel, and behind them what has room; a web page is marked as such, with host and day."""
    first = citations[0]
    page = words.page_label(first.page, is_ocr=first.is_ocr) if first.page else ""
    head = _joined(page, channel)
    room = longest - len(head) - len(" · ") if head else longest
    return _joined(head, *_parts(words, tame(name), citations, room))


def _parts(words: ReplyWords, name: str, citations: Sequence[Citation], room: int) -> list[str]:
    """Name, section and details within ``room`` characters; a detail is shown whole or not at all."""
    if citations[0].host:
        return [shorten(_on_the_web(words, name, citations[0]), room)] if room >= MIN_CHARS else []
    if room < MIN_CHARS:
        return []
    path = [tame(" ".join(heading.split())) for heading in _common_path(citations)]
    section = path[-1] if path and path[-1].casefold() != name.casefold() else ""
    claimed = len(" · ") + min(len(section), SECTION_CHARS) if section else 0
    parts = [shorten_middle(name, max(room - claimed, MIN_CHARS))]
    left = room - len(parts[0]) - len(" · ")
    is_shown = bool(section) and left >= min(len(section), MIN_CHARS)
    if is_shown:
        parts.append(shorten(section, left))
        left -= len(parts[1]) + len(" · ")
    for detail in map(tame, citations[0].details):
        if len(detail) <= left:
            parts.append(detail)
            left -= len(detail) + len(" · ")
    whole = " › ".join(path)
    if is_shown and len(whole) <= left + len(" · ") + len(parts[1]):
        parts[1] = whole
    return parts


def _common_path(citations: Sequence[Citation]) -> Sequence[str]:
    """Return the headings that all quotes of a page stand under."""
    levels = zip(*(one.section for one in citations), strict=False)
    return [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]


def _on_the_web(words: ReplyWords, name: str, citation: Citation) -> str:
    host = shorten_middle(citation.host, MAX_HOST_CHARS, HOST_END_CHARS)
    return words.web_source(title=name, host=host, day=citation.fetched[:10])


def _fallback(words: ReplyWords, name: str, citations: Sequence[Citation]) -> str:
    first = citations[0]
    if first.host:
        return _label(words, name, citations, len(name) + FALLBACK_CHARS)
    return words.page_of(page=first.page, file=PurePosixPath(first.file).name)


def figure_pages(answer: Answer, longest: int = LABEL_CHARS) -> list[CitedPage]:
    """One source per figure of an answer; in a label of ``longest`` characters the page is never cut off."""
    words, channel = reply_words(answer.language), _channel(answer)
    room = longest - len(_joined("…", channel)) + 1
    return [
        CitedPage(
            numbers=(),
            label=_joined(words.figure_label(_caption_within(words, figure, room), figure.page), channel),
            fallback=_joined(words.figure_label(figure.caption, figure.page), channel),
            url=figure.url,
        )
        for figure in answer.figures
    ]


def picture_words(answer: Answer, figure: AnswerFigure) -> tuple[str, str]:
    """(title of the picture of one of an answer's figures, what is said to who cannot see it)."""
    words, caption = reply_words(answer.language), " ".join(figure.caption.split())
    channel = _channel(answer)
    room = PICTURE_TITLE_CHARS - len(_joined("…", channel)) + 1
    title = _joined(shorten(tame(words.figure_label(caption, figure.page)), room), channel)
    return title, shorten(tame(caption or words.figure_label("", figure.page)), ALT_TEXT_CHARS)


def _caption_within(words: ReplyWords, figure: AnswerFigure, longest: int) -> str:
    """A caption as far as it leaves room for the rest of its label; cut words could turn into links."""
    room = longest - len(words.figure_label("…", figure.page))
    caption = " ".join(figure.caption.split())
    return caption if len(caption) <= room else f"{caption[:room].rpartition(' ')[0]}…"


def opened_pages(answer: Answer) -> list[CitedPage]:
    """Return the cited pages; where nothing is cited, the page that came nearest."""
    near = answer.nearest
    if near is None or answer.citations:
        return cited_pages(answer)
    words, channel = reply_words(answer.language), _channel(answer)
    label = _joined(words.source_label(near.page, near.name), channel)
    return [CitedPage((), label, _joined(words.page_of(page=near.page, file=near.name), channel), near.url)]


def split_sources(pages: Sequence[CitedPage], shown: int) -> tuple[list[CitedPage], list[CitedPage]]:
    """(pages that get a button of their own, pages behind one "N more sources" control)."""
    return list(pages[:shown]), list(pages[shown:])


def _document(citation: Citation) -> _Document:
    return citation.file, citation.version_id


def _names(citations: Sequence[Citation]) -> dict[_Document, str]:
    """Return each is called as in its channel, by title or file where an older answer does not say how."""
    names = distinct_names({_document(one): (one.name or one.title, "", one.file) for one in citations})
    short = {key: shorten_middle(name, NAME_CHARS) for key, name in names.items()}
    return {
        key: _from_difference(name, [names[one] for one in names if short[one] == short[key]])
        for key, name in names.items()
    }


def _from_difference(name: str, alike: Sequence[str]) -> str:
    """A name without the beginning that it shares with those that look like it once they are shortened."""
    columns = zip(*alike, strict=False) if len(alike) > 1 else ()
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return f"…{name[shared - MIN_CHARS :]}" if shared > MIN_CHARS else name


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


class LinklessAnswering:
    """Answers for chats whose people cannot open our links, as the public URL is this very machine's."""

    def __init__(self, answering: QuestionAnswering) -> None:
        self._answering = answering

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer with its sources in its text."""
        return without_links(await self._answering.answer(question, listener))


class LinklessNotes:
    """Notes on pages for threads of such chats."""

    def __init__(self, notes: NoteWriter) -> None:
        self._notes = notes

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """As the notes themselves have it."""
        return await self._notes.due(note)

    async def write(self, note: Mapping[str, int]) -> Answer:
        """Return the note with its page in its text."""
        return without_links(await self._notes.write(note))


class LinklessAnnouncer:
    """Announcements in such chats."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer

    def announcing_place(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """As the platform has it."""
        return self._announcer.announcing_place(channel, address)

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post it with a sentence in place of its buttons; its files are named in any case."""
        if announcement.sources:
            more = (*announcement.more, reply_words(Language.ENGLISH).no_links)
            announcement = replace(announcement, more=more, sources=())
        await self._announcer.announce(place, announcement)

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """As the platform has it."""
        return await self._announcer.has_announced(place, announcement, since)


def without_links(answer: Answer) -> Answer:
    """Return the same words, and below them a sentence and a line for each source that no button opens."""
    on_the_web = tuple(one for one in answer.citations if one.host)
    own = replace(answer, citations=tuple(one for one in answer.citations if not one.host))
    if own.citations or not answer.citations:
        pages = [*opened_pages(own), *figure_pages(own)]
    else:
        pages = figure_pages(own)
    if not pages:
        return answer
    lines = [reply_words(answer.language).no_links, *(numbered(page, page.label) for page in pages)]
    return replace(
        answer,
        text="\n".join([answer.text, "", *lines]),
        citations=on_the_web,
        figures=(),
        nearest=None,
    )
