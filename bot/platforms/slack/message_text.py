"""Text of Slack messages: from their text or their blocks, without what is no word of a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

# Slack's markup in angle brackets: mentions, channels, links, each with an optional label.
_CONTROL = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
# ``:name:``, perhaps with a skin tone; not a time such as 10:30:00.
_EMOJI = re.compile(r"(?<![\w:]):[a-z0-9_+'-]+:(?::skin-tone-\d:)?(?![\w:])")
_SPACES = re.compile(r"[ \t]{2,}")


def text_of(message: Json) -> str:
    """Return the text of a message as mrkdwn; some have it in their blocks only."""
    return str(message.get("text") or "") or "".join(_written(message.get("blocks"))).strip()


def plain_text(text: str, bot: str) -> str:
    """Convert Slack markup to plain text, without mentions of ``bot``, user groups, bare ids and emoji."""
    bare = _EMOJI.sub("", _CONTROL.sub(lambda match: _spelled(match, bot), text))
    decoded = bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _SPACES.sub(" ", decoded.replace("\N{NO-BREAK SPACE}", " ")).strip()


def _spelled(match: re.Match[str], bot: str) -> str:
    sigil, target, label = match.groups()
    if not sigil:
        return label or target
    if sigil == "!":  # a date has a text, "@here" and user groups are no words
        return label if label and target.startswith("date") else ""
    if not label or target == bot:
        return ""
    return f"{sigil}{label.lstrip('@#')}"


def _written(blocks: Any) -> Iterator[str]:
    """Yield the texts of blocks and of their elements, as mrkdwn."""
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, Mapping):
            yield _own_text(block)
            yield from _written(block.get("elements"))
            yield "\n" if str(block.get("type")).startswith("rich_text_") else ""


def _own_text(element: Json) -> str:
    kind, text = element.get("type"), element.get("text")
    if kind == "user":
        return f"<@{element.get('user_id')}>"
    if kind == "link":
        return str(text or element.get("url") or "")
    if isinstance(text, Mapping):  # of a section
        return f"{text.get('text') or ''}\n"
    if kind == "text":
        return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return str(text) if kind in ("mrkdwn", "plain_text") else ""
