"""Writes an answer as a Slack message: pure, and within Block Kit's limits whatever the answer holds.

Sources take their place first; the words get what is left, and say so when they were cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

from bot.core.citations.source_buttons import figure_pages, opened_pages, split_sources
from bot.core.models import Answer, CitedPage, Language
from bot.core.notifications.receipts import announcement_paragraphs
from bot.core.plaintext import MORE_TO_COME, shorten, tame, without_marks
from bot.core.ports import Announcement
from bot.core.wording import ReplyWords, reply_words

Block = dict[str, Any]

MESSAGE = 12_000
"""Characters of all blocks; Slack was seen to refuse a message at about 13,200."""
SECTION = 3000
LABEL = 75
UNDERSTOOD = 300
OPTIONS = 5
NOTIFICATION = 3000


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """What ``chat.postMessage`` and ``chat.update`` take."""

    text: str
    """For notifications, and where blocks are not shown."""
    blocks: tuple[Block, ...]


def render(answer: Answer, sources_shown: int) -> SlackMessage:
    """The answer's words, a URL button per cited page and per figure, and a control for the pages beyond."""
    said, pages = reply_words(answer.language), opened_pages(answer)
    figures = figure_pages(answer, LABEL)
    sources = _source_blocks(pages, sources_shown, said)
    if figures:
        buttons = [_button(f"source-figure-{number}", page) for number, page in enumerate(figures, start=1)]
        sources.append({"type": "actions", "block_id": "figures", "elements": buttons})
    understood: list[Block] = []
    if lines := said.searched_otherwise(answer):
        understood.append({"type": "context", "elements": [_plain(line, UNDERSTOOD) for line in lines]})
    words = tame(answer.text).strip() or said.engine_failed
    taken = len(json.dumps([*understood, *sources], ensure_ascii=False))
    sections = [_section(part) for part in _parts(words, MESSAGE - taken, said)]
    return SlackMessage(_fallback(words, [*pages, *figures]), (*understood, *sections, *sources))


def render_beginning(text: str) -> SlackMessage:
    """The first sentences of an answer, and that more is to come."""
    words = tame(without_marks(text)).strip()
    more = {"type": "context", "elements": [_plain(MORE_TO_COME)]}
    shown = _section(words[: _fitting(words, SECTION)])
    return SlackMessage(_fallback(words, []), (shown, more))


def render_announcement(announcement: Announcement) -> SlackMessage:
    """A paragraph per named file, and one URL button each that opens its first page."""
    said = reply_words(Language.ENGLISH)
    sources = _source_blocks(announcement.sources, len(announcement.sources), said)
    words = tame("\n\n".join(announcement_paragraphs(announcement)))
    budget = MESSAGE - len(json.dumps(sources, ensure_ascii=False))
    sections = map(_section, _parts(words, budget, said))
    return SlackMessage(_fallback(words, announcement.sources), (*sections, *sources))


def escape(text: str) -> str:
    """Text that Slack takes for text: no link, mention or other control sequence is left in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _source_blocks(pages: Sequence[CitedPage], shown: int, said: ReplyWords) -> list[Block]:
    first, further = split_sources(pages, shown)
    if not first:
        return []
    buttons = [_button(f"source-{number}", page) for number, page in enumerate(first, start=1)]
    groups = [further[start : start + OPTIONS] for start in range(0, len(further), OPTIONS)]
    menus = [_menu(number, group, said) for number, group in enumerate(groups, start=1)]
    return [{"type": "actions", "block_id": "sources", "elements": buttons}, *menus]


def _button(action: str, page: CitedPage) -> Block:
    return {
        "type": "button",
        "action_id": action,
        "text": _plain(page.label),
        "url": page.url,
        "accessibility_label": _label(page.fallback),
    }


def _menu(number: int, pages: Sequence[CitedPage], said: ReplyWords) -> Block:
    """The control for pages beyond the buttons: Slack lets one hold five."""
    options = [
        {"text": _plain(page.label), "value": str(place), "url": page.url} for place, page in enumerate(pages)
    ]
    return {
        "type": "section",
        "block_id": f"sources-{number}",
        "text": _plain(said.more_sources(len(pages))),
        "accessory": {"type": "overflow", "action_id": f"source-more-{number}", "options": options},
    }


def _plain(text: str, limit: int = LABEL) -> Block:
    return {"type": "plain_text", "text": _label(text, limit), "emoji": False}


def _label(text: str, limit: int = LABEL) -> str:
    """Plain text has no escapes, so angle brackets give way to ones that mean nothing to Slack."""
    return shorten(tame(text).replace("<", "‹").replace(">", "›"), limit)


def _section(text: str) -> Block:
    """``verbatim``: Slack itself makes no link or mention out of these words."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": escape(text), "verbatim": True}}


def _parts(text: str, budget: int, said: ReplyWords) -> list[str]:
    """The text in pieces that fit a section each; the last one says it when there was more."""
    if len(escape(text)) > budget:
        end = _fitting(text, budget - len(said.cut_short) - 2)
        text = f"{text[:end].rstrip()}… {said.cut_short}"
    parts = []
    while text:
        end = _fitting(text, SECTION)
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return parts


def _fitting(text: str, limit: int) -> int:
    """Where to end, between two words if there are any, so that what stands before fits once escaped."""
    lengths = accumulate(len(escape(character)) for character in text)
    end = sum(1 for _ in takewhile(lambda length: length <= limit, lengths))
    if end == len(text):
        return end
    space = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
    return space if space > end // 2 else end


def _fallback(words: str, pages: Sequence[CitedPage]) -> str:
    sources = "\n".join(escape(tame(page.fallback)) for page in pages)
    return f"{escape(words[: _fitting(words, NOTIFICATION)])}\n{sources}".strip()
