"""Renders answers and announcements as Block Kit messages; pure functions that respect Slack's limits.

The sources' blocks are budgeted first; the text gets the rest and says so where it was truncated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, takewhile
from typing import Any, NamedTuple

from bot.answers.citations.source_buttons import (
    ALT_TEXT_CHARS,
    LABEL_CHARS,
    PICTURE_TITLE_CHARS,
    figure_pages,
    numbered,
    opened_pages,
    picture_words,
    split_sources,
)
from bot.chat.notifications.receipts import announcement_paragraphs
from bot.core.models import Answer, Citation, CitedPage, Language, SourceChange
from bot.core.plaintext import (
    BOLD_BEGINS,
    BOLD_ENDS,
    CODE_BEGINS,
    CODE_ENDS,
    MORE_TO_COME,
    embolden,
    shorten,
    strip_hidden_chars,
    without_markers,
)
from bot.core.ports import Announcement
from bot.core.wording import ReplyWords, reply_words

Block = dict[str, Any]

# Characters of all blocks as JSON; Slack was seen to refuse a message at about 13,200.
MAX_MESSAGE_CHARS = 12_000
# Slack's limit for the text of a section block.
MAX_SECTION_CHARS = 3000
MAX_NOTE_CHARS = 300
# Slack's limit for the options of an overflow menu.
MAX_MENU_OPTIONS = 5
MAX_FALLBACK_CHARS = 3000
# Of a source beside other buttons: page and document; the line above its quote names the section.
ROW_LABEL_CHARS = 48
# Longest inline link; the source's button still has the whole URL.
MAX_LINK_CHARS = 600

_UNIT = re.compile(
    rf"\[(\d{{1,3}})\]|{BOLD_BEGINS}(.+?){BOLD_ENDS}|{CODE_BEGINS}(.+?){CODE_ENDS}|.", re.DOTALL
)
# ``block_id`` of an image block: the figure's number and its Slack file id.
_PICTURE = re.compile(r"picture-(?P<number>\d+)-(?P<file>.+)")
_IN_LINKS = str.maketrans({"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C", " ": "%20"})


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """Arguments of ``chat.postMessage`` and ``chat.update``."""

    # Fallback for notifications and clients that show no blocks.
    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Buttons that follow the sources in the row below an answer."""

    block_id: str
    buttons: tuple[Block, ...]
    # ``value`` of the sources' buttons.
    source_value: str


def render(
    answer: Answer,
    sources_shown: int,
    pictures: Mapping[int, str] | None = None,
    extra_blocks: Sequence[Block] = (),
    changes: Sequence[SourceChange] = (),
    *,
    row: AnswerRow | None = None,
) -> SlackMessage:
    """Render an answer: text in which each [n] links to its quote, and one row of buttons.

    The row has a URL button per cited page and figure, then those of ``row``.

    Args:
        sources_shown: cited pages that get a button; further ones go into overflow menus.
        pictures: index of a figure in the answer -> Slack file id; its image follows the line that cites it.
            Figures without a file get a button only.
        extra_blocks: further blocks of the same message, which count against the character budget.
        changes: updates of its sources, shown above the text with a line and a button each.
        row: buttons after the sources.
    """
    said = reply_words(answer.language)
    pages = opened_pages(answer, ROW_LABEL_CHARS if row else LABEL_CHARS)
    figures = figure_pages(answer)
    shown = _pictures(answer, pictures or {})
    sources = _source_blocks(pages, sources_shown, said, figures, row)
    understood: list[Block] = [_change(number, one) for number, one in enumerate(changes, start=1)]
    if lines := said.query_notes(answer):
        understood.append({"type": "context", "elements": [_plain(line, MAX_NOTE_CHARS) for line in lines]})
    if answer.is_generated:  # verbatim quotes need no "AI generated" note
        note: Block = {
            "type": "context",
            "block_id": "generated",
            "elements": [_plain(said.generated, MAX_NOTE_CHARS)],
        }
        sources.insert(0, note)
    words = strip_hidden_chars(answer.text).strip() or said.engine_failed
    if answer.people:
        sources.insert(0, _people(answer.people))
    taken = len(json.dumps([*understood, *sources, *extra_blocks, *shown.values()], ensure_ascii=False))
    sections: list[Block] = []
    text = embolden(words, answer.headings)
    for part in _parts(text, MAX_MESSAGE_CHARS - taken, said, _links(answer.citations), shown):
        sections.append(_section(part.text))
        sections += chain.from_iterable(shown.pop(number, ()) for number in part.numbers)
    sections += chain.from_iterable(shown.values())
    fallback = _fallback(
        "\n".join([*(strip_hidden_chars(one.line) for one in changes), words]), [*pages, *figures]
    )
    return SlackMessage(fallback, (*understood, *sections, *sources))


def _people(people: Sequence[str]) -> Block:
    """Return a context block that mentions ``people``, each given as slack:<team>:<user>."""
    mentions = " ".join(f"<@{one.rpartition(':')[2]}>" for one in people)
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": mentions}]}


def render_beginning(text: str) -> SlackMessage:
    """Render the first sentences of an answer, with a note that more follows."""
    more = {"type": "context", "elements": [_plain(MORE_TO_COME)]}
    return SlackMessage(_fallback(_unmarked(text), []), (render_sentences(text), more))


def render_sentences(text: str) -> Block:
    """Render sentences without their [n] marks, which link to nothing before the answer is complete."""
    return _section(escape_within(_unmarked(text), MAX_SECTION_CHARS))


def render_announcement(announcement: Announcement, row: AnswerRow | None = None) -> SlackMessage:
    """Render an announcement: a paragraph per listed file, and one row of buttons, ``row`` first."""
    said = reply_words(Language.ENGLISH)
    sources = _source_blocks(announcement.sources, len(announcement.sources), said)
    if row:
        links = sources[0]["elements"] if sources else []
        sources = [{"type": "actions", "block_id": row.block_id, "elements": [*row.buttons, *links]}]
    words = strip_hidden_chars("\n\n".join(announcement_paragraphs(announcement)))
    budget = MAX_MESSAGE_CHARS - len(json.dumps(sources, ensure_ascii=False))
    sections = [_section(part.text) for part in _parts(words, budget, said, {})]
    return SlackMessage(_fallback(words, announcement.sources), (*sections, *sources))


def escape(text: str) -> str:
    """Escape mrkdwn control characters, so that no link, mention or other control sequence is left."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_within(text: str, limit: int) -> str:
    """Return the longest prefix of a text that has at most ``limit`` characters once escaped."""
    units = _units(text, {})
    return "".join(unit.shown for unit in units[: _fitting(units, limit)])


def _source_blocks(
    pages: Sequence[CitedPage],
    shown: int,
    said: ReplyWords,
    figures: Sequence[CitedPage] = (),
    row: AnswerRow | None = None,
) -> list[Block]:
    """Return the row of buttons, and the menus of the pages without a button."""
    first, further = split_sources(pages, shown)
    value = {"value": row.source_value} if row else {}
    buttons = [_button(f"source-{number}", page) | value for number, page in enumerate(first, start=1)]
    buttons += [_button(f"source-figure-{n}", page) | value for n, page in enumerate(figures, start=1)]
    buttons += row.buttons if row else ()
    groups = [further[start : start + MAX_MENU_OPTIONS] for start in range(0, len(further), MAX_MENU_OPTIONS)]
    menus = [_menu(number, group, said) for number, group in enumerate(groups, start=1)]
    block_id = row.block_id if row else "sources"
    return [*([{"type": "actions", "block_id": block_id, "elements": buttons}] if buttons else []), *menus]


def _change(number: int, change: SourceChange) -> Block:
    """Return the block for an updated source, with a button to its current page."""
    line = _section(f"⚠️ {escape(strip_hidden_chars(change.line))}")
    return line | ({"accessory": _button(f"source-newer-{number}", change.page)} if change.page else {})


def _button(action: str, page: CitedPage) -> Block:
    return {
        "type": "button",
        "action_id": action,
        "text": _plain(numbered(page, page.label)),
        "url": page.url,
        "accessibility_label": _label(numbered(page, page.fallback)),
    }


def _menu(number: int, pages: Sequence[CitedPage], said: ReplyWords) -> Block:
    """Return an overflow menu of up to five pages that have no button."""
    options = [
        {"text": _plain(numbered(page, page.label)), "value": str(place), "url": page.url}
        for place, page in enumerate(pages)
    ]
    return {
        "type": "section",
        "block_id": f"sources-{number}",
        "text": _plain(said.more_sources(len(pages))),
        "accessory": {"type": "overflow", "action_id": f"source-more-{number}", "options": options},
    }


def _pictures(answer: Answer, files: Mapping[int, str]) -> dict[int, list[Block]]:
    """Return citation number -> image blocks placed after its line."""
    blocks: dict[int, list[Block]] = {}
    for place, file in sorted(files.items()):
        figure = answer.figures[place]
        title, alternative = picture_words(answer, figure)
        block: Block = {
            "type": "image",
            "block_id": f"picture-{place + 1}-{file}",
            "slack_file": {"id": file},
            "title": _plain(title, PICTURE_TITLE_CHARS),
            "alt_text": _label(alternative, ALT_TEXT_CHARS),
        }
        blocks.setdefault(figure.number, []).append(block)
    return blocks


def shown_pictures(blocks: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return index of a figure in its answer -> Slack file id, read back from a message's blocks."""
    named = (_PICTURE.fullmatch(str(block.get("block_id"))) for block in blocks if "slack_file" in block)
    return {int(match["number"]) - 1: match["file"] for match in named if match}


def _plain(text: str, limit: int = LABEL_CHARS) -> Block:
    return {"type": "plain_text", "text": _label(text, limit), "emoji": False}


def _label(text: str, limit: int = LABEL_CHARS) -> str:
    """Return a plain_text label of at most ``limit`` characters."""
    # plain_text has no escapes, so angle brackets are replaced by lookalikes that Slack does not parse.
    return shorten(strip_hidden_chars(text).replace("<", "‹").replace(">", "›"), limit)


def _section(text: str) -> Block:
    """Return a section block; ``text`` is escaped already."""
    # verbatim: Slack adds no links or mentions of its own.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


class _Part(NamedTuple):
    """A piece of the text that fits into one section block."""

    # Escaped, with links.
    text: str
    # Citation numbers whose pictures follow this piece.
    numbers: tuple[int, ...]


def _parts(
    text: str, budget: int, said: ReplyWords, links: Mapping[int, str], breaks: Collection[int] = ()
) -> list[_Part]:
    """Split a text into pieces that fit one section block each; the last says so if text was cut off.

    A piece also ends after the line that first has one of the citation numbers ``breaks``.
    """
    # Text takes precedence over links: when over budget, link only the first [n] of each number, then cut.
    units = _units(text, links)
    if _length(units) > budget:
        units = _units(text, links, is_first_only=True)
    if _length(units) > budget:
        units = units[: _fitting(units, budget - len(said.cut_short) - 2)]
        while units and units[-1].text.isspace():
            units.pop()
        units += _units(f"… {said.cut_short}", {})
    ends, parts, start = _line_ends(units, breaks), [], 0
    while start < len(units):
        end = min([start + _fitting(units[start:], MAX_SECTION_CHARS), *(end for end in ends if end > start)])
        shown = "".join(unit.shown for unit in units[start:end]).strip()
        parts.append(_Part(shown, tuple(ends.get(end, ()))))
        start = end
    return [part for part in parts if part.text]


def _line_ends(units: Sequence[_Unit], numbers: Collection[int]) -> dict[int, list[int]]:
    """Return end of a line -> the citation numbers that occur first on that line."""
    ends: dict[int, list[int]] = {}
    texts = [unit.text for unit in units]
    for number in numbers:
        if (mark := f"[{number}]") in texts:
            place = texts.index(mark)
            end = texts.index("\n", place) if "\n" in texts[place:] else len(texts)
            ends.setdefault(end, []).append(number)
    return ends


class _Unit(NamedTuple):
    """An atom that is never split: a character, a citation mark, a heading or code."""

    text: str
    # As rendered: escaped, or a link made by this module.
    shown: str


def _units(text: str, links: Mapping[int, str], *, is_first_only: bool = False) -> list[_Unit]:
    left, units = dict(links), []
    for match in _UNIT.finditer(text):
        number = int(match[1] or 0)
        url = (left.pop(number, "") if is_first_only else left.get(number, "")) if number else ""
        shown = f"<{url}|{match[0]}>" if url else escape(match[0])
        shown = _bold(match[2]) if match[2] else f"`{escape(match[3])}`" if match[3] else shown
        units.append(_Unit(match[0], shown))
    return units


def _bold(text: str) -> str:
    # mrkdwn has no escape for "*", so a lookalike replaces it.
    return f"*{escape(text).replace('*', '∗')}*"


def _links(citations: Sequence[Citation]) -> dict[int, str]:
    """Return citation number -> URL of the page with that quote highlighted."""
    return {one.number: url for one in citations if (url := _url(one.url))}


def _url(url: str) -> str:
    """Return a URL for inline use: without its fragment if too long, '' if still too long."""
    whole = url.translate(_IN_LINKS)
    short = whole if len(whole) <= MAX_LINK_CHARS else whole.partition("#")[0]
    return short if len(short) <= MAX_LINK_CHARS else ""


def _unmarked(text: str) -> str:
    return strip_hidden_chars(without_markers(text)).strip()


def _length(units: Sequence[_Unit]) -> int:
    return sum(len(unit.shown) for unit in units)


def _fitting(units: Sequence[_Unit], limit: int) -> int:
    """Return how many units fit into ``limit`` characters as rendered, cut between words where possible."""
    lengths = accumulate(len(unit.shown) for unit in units)
    end = sum(1 for _ in takewhile(lambda length: length <= limit, lengths))
    if end == len(units):
        return end
    spaces = (place for place in range(end - 1, end // 2, -1) if units[place].text in (" ", "\n"))
    return next(spaces, end)


def _fallback(words: str, pages: Sequence[CitedPage]) -> str:
    sources = "\n".join(escape(strip_hidden_chars(numbered(page, page.fallback))) for page in pages)
    return f"{escape_within(words, MAX_FALLBACK_CHARS)}\n{sources}".strip()
