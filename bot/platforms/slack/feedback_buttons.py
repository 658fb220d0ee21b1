"""Feedback buttons under an answer: their blocks, and parsing of clicks on them.

The ``block_id`` names the tenant that was asked; a click counts only in the channel where its question was
answered. The clicking user comes from Slack's signed payload. Replies to a click are ephemeral.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.chat.conversation.feedback import FeedbackReply
from bot.core.models import Answer, AnswerState, Language
from bot.core.plaintext import shorten, strip_hidden_chars
from bot.core.wording import reply_words
from bot.platforms.slack.blocks import MAX_SECTION_CHARS, Block, escape_within
from bot.platforms.slack.events import SLACK, SLACK_ID, is_outsider
from bot.platforms.slack.question_buttons import installation_of_click
from storage.chat.feedback import FeedbackVerdict
from storage.models import ChannelKey, TenantName

Json = Mapping[str, Any]

ACTION = re.compile(r"feedback(?:-(?!links)\w+)?")
# ``action_id`` of the button that asks for new links; the other ids are feedback.
NEW_LINKS = "feedback-links"
WHY = "why"
LINKS = "links"
MAX_LABEL_CHARS = 75
_BLOCK = "feedback:{tenant}"
_OUR_BLOCK = re.compile(r"(feedback:\w+_([A-Z0-9]{2,24}))(?::(?:why|reason))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FeedbackClick:
    """A person's click under an answer."""

    # The channel whose documents were asked.
    key: ChannelKey
    user: str
    # Arguments of chat.postEphemeral: ``channel``, ``user`` and, in a thread, ``thread_ts``.
    place: dict[str, Any]
    # Key of the question.
    message_key: str
    language: Language
    # None: a click on "Why?" or "New links".
    verdict: FeedbackVerdict | None
    # Index, from 0, of the offered page that the person marked as the right one.
    page: int | None
    wants_links: bool = False


def feedback_blocks(answer: Answer, tenant: TenantName, message_key: str) -> list[Block]:
    """Return Slack's native feedback buttons, "Why?" and "New links"; none if nothing was searched."""
    if answer.state in {AnswerState.CHAT, AnswerState.FAILED}:
        return []
    words = reply_words(answer.language)

    def value(said: str) -> str:
        return f"{said} {answer.language.value} {message_key}"

    def choice(label: str, verdict: FeedbackVerdict) -> Block:
        return {"text": _plain(label), "value": value(verdict.value)}

    thumbs = {
        "type": "feedback_buttons",
        "action_id": "feedback",
        "positive_button": choice(words.helpful, FeedbackVerdict.GOOD),
        "negative_button": choice(words.not_helpful, FeedbackVerdict.BAD),
    }
    asking = [("feedback-why", words.why, WHY)]
    if any(not one.host for one in answer.citations):
        asking.append((NEW_LINKS, words.new_links, LINKS))
    buttons = [
        {"type": "button", "action_id": action, "text": _plain(label), "value": value(said)}
        for action, label, said in asking
    ]
    block = _BLOCK.format(tenant=tenant)
    return [
        {"type": "context_actions", "block_id": block, "elements": [thumbs]},
        {"type": "actions", "block_id": f"{block}:why", "elements": buttons},
    ]


def reply_blocks(reply: FeedbackReply, click: FeedbackClick) -> list[Block]:
    """Render the reply to a click: its text and, for a bad answer, reasons and pages to choose from."""
    block = _BLOCK.format(tenant=click.key.tenant)
    blocks: list[Block] = [_section(reply.text)]
    if reply.pages:
        options = [{"text": _plain(label), "value": str(n)} for n, label in enumerate(reply.pages)]
        menu = {
            "type": "static_select",
            "action_id": "feedback-page",
            "placeholder": _plain(reply.right_page),
            "options": options,
        }
        blocks.append({"type": "actions", "block_id": f"{block}:page", "elements": [menu]})
    if reply.reasons:
        buttons = [
            {
                "type": "button",
                "action_id": f"feedback-{verdict.value}",
                "text": _plain(label),
                "value": f"{verdict.value} {click.language.value} {click.message_key}",
            }
            for verdict, label in reply.reasons
        ]
        blocks.append({"type": "actions", "block_id": f"{block}:reason", "elements": buttons})
    return blocks


def read_feedback_click(payload: Json) -> FeedbackClick | None:
    """Parse a click in ``block_actions``; None if its button is of another channel or it has no value.

    Choosing a page in the menu has none: the choice is sent along with the next button.
    """
    action: Json = (payload.get("actions") or [{}])[0]
    channel = str((payload.get("channel") or {}).get("id") or "")
    user = str((payload.get("user") or {}).get("id") or "")
    installation = installation_of_click(payload)
    if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (installation, channel, user))):
        return None
    ours = _OUR_BLOCK.fullmatch(str(action.get("block_id") or ""))
    if ours is None:
        return None
    block, conversation = ours.groups()
    said, language, message_key = (*str(action.get("value") or "").split(" ", 2), "", "", "")[:3]
    key = ChannelKey(SLACK, installation, conversation)
    # A question asked in the App Home is answered in the direct chat; its message key names that chat.
    is_here = channel == conversation or message_key.startswith(f"{installation}:{channel}:")
    is_ours = is_here and block == _BLOCK.format(tenant=key.tenant)
    if not is_ours or said not in {*FeedbackVerdict, WHY, LINKS} or language not in set(Language):
        return None
    container: Json = payload.get("container") or {}
    thread = (payload.get("message") or {}).get("thread_ts") or container.get("thread_ts")
    return FeedbackClick(
        key,
        user,
        {"channel": channel, "user": user, **({"thread_ts": thread} if thread else {})},
        message_key,
        Language(language),
        None if said in {WHY, LINKS} else FeedbackVerdict(said),
        _chosen_page(payload, f"{block}:page"),
        wants_links=said == LINKS,
    )


def _chosen_page(payload: Json, block: str) -> int | None:
    chosen = ((payload.get("state") or {}).get("values") or {}).get(block, {}).get("feedback-page", {})
    value = str((chosen.get("selected_option") or {}).get("value") or "")
    return int(value) if value.isdecimal() else None


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": shorten(strip_hidden_chars(text), MAX_LABEL_CHARS), "emoji": False}


def _section(text: str) -> Block:
    words = escape_within(strip_hidden_chars(text), MAX_SECTION_CHARS)
    return {"type": "section", "text": {"type": "mrkdwn", "text": words, "verbatim": True}}
