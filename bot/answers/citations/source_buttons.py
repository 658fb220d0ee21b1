"""Source buttons under an answer, one per cited page, for every platform.

A label begins with the numbers of the page's quotes and the page itself, which are never truncated. The
document's name, the section and further details follow as far as they fit. If links cannot be opened, the
sources become lines of the text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, TypeVar

from bot.answers.citations.web_links import marking_all
from bot.core.models import Answer, AnswerFigure, Citation, CitedPage, Language, Question
from bot.core.plaintext import shorten, shorten_middle, strip_hidden_chars
from bot.core.ports import Announcement, Announcer, AnswerListener, NoteWriter, QuestionAnswering
from bot.core.wording import ReplyWords, reply_words
from storage.models import Channel, TenantName

# Slack's limit for a button label; Teams buttons show the same.
LABEL_CHARS = 75
PICTURE_TITLE_CHARS, ALT_TEXT_CHARS = 300, 1000
# Numbers that are marked one by one; of more, consecutive ones become a range.
MARKS_LISTED = 6
# Minimum space for a name in a label; names that look alike when truncated to it are distinguished.
NAME_CHARS = 30
# Space reserved for a section next to a long name.
SECTION_CHARS = 24
# Space after the name of a web page where no label limits it.
FALLBACK_CHARS = 500
# Maximum length of a host, and of its end, which identifies the owner: the date needs its space, too.
MAX_HOST_CHARS, HOST_END_CHARS = 28, 18
# Maximum length of a channel's name, shown in direct chats that are answered from one.
CHANNEL_CHARS = 24
# A name or section with less space is left out.
MIN_CHARS = 8

Key = TypeVar("Key", bound=Hashable)
# Path and version: two folders of one channel may each contain a file at the same path.
_Document = tuple[str, int]


def cited_pages(answer: Answer, longest: int = LABEL_CHARS) -> list[CitedPage]:
    """Return one source per cited page of a document, in order of first use.

    A label with its numbers has at most ``longest`` characters; a web page's, which needs its date, more.
    """
    groups: dict[tuple[_Document, int], list[Citation]] = {}
    for citation in answer.citations:
        groups.setdefault((_document(citation), citation.page), []).append(citation)
    words, names = reply_words(answer.language), _names(answer.citations)
    channel = _channel(answer)
    return [
        CitedPage(
            numbers=(numbers := tuple(citation.number for citation in citations)),
            label=_label(
                words,
                names[document],
                citations,
                (LABEL_CHARS if citations[0].host else longest) - len(marks_of(numbers)) - 1,
                channel,
            ),
            fallback=_joined(_fallback(words, names[document], citations), channel),
            url=marking_all([one.url for one in citations]) if citations[0].host else citations[0].url,
        )
        for (document, _), citations in groups.items()
    ]


def numbered(page: CitedPage, text: str) -> str:
    """Return a page's label or fallback after its numbers: ``[1][3] p. 4 · Handbook``."""
    return f"{marks_of(page.numbers)} {text}" if page.numbers else text


def marks_of(numbers: Sequence[int]) -> str:
    """Format citation numbers as the text marks them: ``[1][3]``; many as ``[1-4,7]``."""
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
    """Return the channel name that an answer's sources show."""
    return shorten_middle(strip_hidden_chars(answer.channel_name), CHANNEL_CHARS)


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))


def _label(
    words: ReplyWords, name: str, citations: Sequence[Citation], longest: int, channel: str = ""
) -> str:
    """Return page and channel, then what fits; a web page is shown with its host and date."""
    first = citations[0]
    page = words.page_label(first.page, is_ocr=first.is_ocr) if first.page else ""
    head = _joined(page, channel)
    room = longest - len(head) - len(" · ") if head else longest
    return _joined(head, *_parts(words, strip_hidden_chars(name), citations, room))


def _parts(words: ReplyWords, name: str, citations: Sequence[Citation], room: int) -> list[str]:
    """Return name, section and details within ``room`` characters; details are never truncated."""
    if citations[0].host:
        return [shorten(_on_the_web(words, name, citations[0]), room)] if room >= MIN_CHARS else []
    if room < MIN_CHARS:
        return []
    path = [strip_hidden_chars(" ".join(heading.split())) for heading in _common_path(citations)]
    section = path[-1] if path and path[-1].casefold() != name.casefold() else ""
    claimed = len(" · ") + min(len(section), SECTION_CHARS) if section else 0
    parts = [shorten_middle(name, max(room - claimed, MIN_CHARS))]
    left = room - len(parts[0]) - len(" · ")
    is_shown = bool(section) and left >= min(len(section), MIN_CHARS)
    if is_shown:
        parts.append(shorten(section, left))
        left -= len(parts[1]) + len(" · ")
    for detail in map(strip_hidden_chars, citations[0].details):
        if len(detail) <= left:
            parts.append(detail)
            left -= len(detail) + len(" · ")
    whole = " › ".join(path)
    if is_shown and len(whole) <= left + len(" · ") + len(parts[1]):
        parts[1] = whole
    return parts


def _common_path(citations: Sequence[Citation]) -> Sequence[str]:
    """Return the headings that all quotes of a page have in common."""
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
    """Return one source per figure of an answer; labels of ``longest`` characters keep the page whole."""
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
    """Return (title, alt text) for the picture of a figure of an answer."""
    words, caption = reply_words(answer.language), " ".join(figure.caption.split())
    channel = _channel(answer)
    room = PICTURE_TITLE_CHARS - len(_joined("…", channel)) + 1
    title = _joined(shorten(strip_hidden_chars(words.figure_label(caption, figure.page)), room), channel)
    return title, shorten(strip_hidden_chars(caption or words.figure_label("", figure.page)), ALT_TEXT_CHARS)


def _caption_within(words: ReplyWords, figure: AnswerFigure, longest: int) -> str:
    """Truncate a caption to fit its label, between words: a cut word could turn into a link."""
    room = longest - len(words.figure_label("…", figure.page))
    caption = " ".join(figure.caption.split())
    return caption if len(caption) <= room else f"{caption[:room].rpartition(' ')[0]}…"


def opened_pages(answer: Answer, longest: int = LABEL_CHARS) -> list[CitedPage]:
    """Return the cited pages; if nothing is cited, the closest page."""
    near = answer.nearest
    if near is None or answer.citations:
        return cited_pages(answer, longest)
    words, channel = reply_words(answer.language), _channel(answer)
    label = _joined(words.source_label(near.page, near.name), channel)
    return [CitedPage((), label, _joined(words.page_of(page=near.page, file=near.name), channel), near.url)]


def split_sources(pages: Sequence[CitedPage], shown: int) -> tuple[list[CitedPage], list[CitedPage]]:
    """Return (pages with a button each, pages behind one "N more sources" control)."""
    return list(pages[:shown]), list(pages[shown:])


def _document(citation: Citation) -> _Document:
    return citation.file, citation.version_id


def _names(citations: Sequence[Citation]) -> dict[_Document, str]:
    """Return the name of each document in its channel, or title or file for older answers without it."""
    names = distinct_names({_document(one): (one.name or one.title, "", one.file) for one in citations})
    short = {key: shorten_middle(name, NAME_CHARS) for key, name in names.items()}
    return {
        key: _from_difference(name, [names[one] for one in names if short[one] == short[key]])
        for key, name in names.items()
    }


def _from_difference(name: str, alike: Sequence[str]) -> str:
    """Drop the beginning that a name shares with names that look alike once truncated."""
    columns = zip(*alike, strict=False) if len(alike) > 1 else ()
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return f"…{name[shared - MIN_CHARS :]}" if shared > MIN_CHARS else name


def distinct_names(documents: Mapping[Key, tuple[str, str, str]]) -> dict[Key, str]:
    """Return a name for each (title, edition, file): the title, or the file if two share it."""
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
    """Answers for chats that cannot open our links, because the public URL is this machine's."""

    def __init__(self, answering: QuestionAnswering) -> None:
        self._answering = answering

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer with its sources in the text."""
        return without_links(await self._answering.answer(question, listener))


class LinklessNotes:
    """Notes on pages for threads of such chats."""

    def __init__(self, notes: NoteWriter) -> None:
        self._notes = notes

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """Delegate to the note writer."""
        return await self._notes.due(note)

    async def write(self, note: Mapping[str, int]) -> Answer:
        """Return the note with its page in the text."""
        return without_links(await self._notes.write(note))


class LinklessAnnouncer:
    """Announcements in such chats."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Delegate to the platform."""
        return self._announcer.announcement_address(channel, address)

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post it with a sentence instead of buttons; its files are named anyway."""
        if announcement.sources:
            more = (*announcement.more, reply_words(Language.ENGLISH).no_links)
            announcement = replace(announcement, more=more, sources=())
        await self._announcer.announce(place, announcement)

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """Delegate to the platform."""
        return await self._announcer.has_announced(place, announcement, since)


def without_links(answer: Answer) -> Answer:
    """Return the answer with a line of text per source instead of buttons; links to the web stay."""
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
