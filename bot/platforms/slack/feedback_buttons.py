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
from bot.platforms.slack.address import SLACK, asker_of
from bot.platforms.slack.blocks import MAX_SECTION_CHARS, AnswerRow, Block, escape_within
from bot.platforms.slack.events import SLACK_ID, is_outsider
from bot.platforms.slack.question_buttons import installation_of_click
from storage.chat.feedback import FeedbackVerdict
from storage.models import ChannelKey, TenantName

Json = Mapping[str, Any]

ACTION = re.compile(r"^feedback-\w+")
SOURCE = re.compile(r"^source-")
WHY = "why"
LINKS = "links"
PERSON, DONE = "person", "done"
THUMB_UP, THUMB_DOWN = "👍", "👎"
MAX_LABEL_CHARS = 75
_BLOCK = "feedback:{tenant}"
_OUR_BLOCK = re.compile(r"(feedback:\w+_([A-Z0-9]{2,24}))(?::reason)?", re.ASCII)


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
    # A verdict, or WHY, LINKS, PERSON or DONE.
    said: str
    # Index, from 0, of the offered page that the person marked as the right one.
    page: int | None

    @property
    def person(self) -> str:
        """The clicker, as in FOOTNOTE_ADMINS."""
        return asker_of(self.key.installation, self.user)


def answer_row(
    answer: Answer, tenant: TenantName, message_key: str, *, offers_person: bool = False
) -> AnswerRow | None:
    """Return the row below an answer: thumbs and "Why?" after its sources; None if nothing was searched.

    A click on a source carries the question, too: if the link has ended, new ones are offered.
    ``offers_person``: a plain no, and the reply that names people, offer to ask one.
    """
    is_searched = answer.state not in {AnswerState.CHAT, AnswerState.FAILED}
    offers_person = offers_person and (bool(answer.people) or answer.state is AnswerState.NOT_FOUND)
    if not is_searched and not offers_person:
        return None
    words = reply_words(answer.language)

    def value(said: str) -> str:
        return f"{said} {answer.language.value} {message_key}"

    def button(action: str, label: str, said: str, name: str = "") -> Block:
        named = {"accessibility_label": shorten(name, MAX_LABEL_CHARS)} if name else {}
        text = {"type": "plain_text", "text": label, "emoji": True} if name else _plain(label)
        return {"type": "button", "action_id": action, "text": text, "value": value(said), **named}

    rating = (
        button("feedback-good", THUMB_UP, FeedbackVerdict.GOOD, words.helpful),
        button("feedback-bad", THUMB_DOWN, FeedbackVerdict.BAD, words.not_helpful),
        button("feedback-why", words.why, WHY),
    )
    person = button("feedback-person", words.ask_person, PERSON)
    buttons = (*(rating if is_searched else ()), *([person] if offers_person else ()))
    return AnswerRow(_BLOCK.format(tenant=tenant), buttons, value(LINKS))


def handoff_row(tenant: TenantName, language: Language, message_key: str) -> AnswerRow:
    """Return the row below a question that a person was asked to look at."""
    value = f"{DONE} {language.value} {message_key}"
    text = _plain(reply_words(language).resolved)
    button = {"type": "button", "action_id": "feedback-done", "text": text, "value": value}
    return AnswerRow(_BLOCK.format(tenant=tenant), (button,), f"{LINKS} {language.value} {message_key}")


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
                "action_id": f"feedback-{verdict}",
                "text": _plain(label),
                "value": f"{verdict} {click.language.value} {click.message_key}",
            }
            for verdict, label in [
                *reply.reasons,
                *([(PERSON, reply.ask_person)] if reply.ask_person else []),
            ]
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
    # A person who was asked may be told in their own direct chat.
    is_here |= said == DONE and channel.startswith("D")
    is_ours = is_here and block == _BLOCK.format(tenant=key.tenant)
    if (
        not is_ours
        or said not in {*FeedbackVerdict, WHY, LINKS, PERSON, DONE}
        or language not in set(Language)
    ):
        return None
    container: Json = payload.get("container") or {}
    thread = (payload.get("message") or {}).get("thread_ts") or container.get("thread_ts")
    return FeedbackClick(
        key,
        user,
        {"channel": channel, "user": user, **({"thread_ts": thread} if thread else {})},
        message_key,
        Language(language),
        said,
        _chosen_page(payload, f"{block}:page"),
    )


def opened_url(payload: Json) -> str:
    """Return the URL of the clicked source, from the message that has it; '' if it is not there."""
    action = str((payload.get("actions") or [{}])[0].get("action_id") or "")
    blocks = (payload.get("message") or {}).get("blocks") or ()
    elements = (one for block in blocks for one in block.get("elements") or ())
    return next((str(one.get("url") or "") for one in elements if one.get("action_id") == action), "")


def _chosen_page(payload: Json, block: str) -> int | None:
    chosen = ((payload.get("state") or {}).get("values") or {}).get(block, {}).get("feedback-page", {})
    value = str((chosen.get("selected_option") or {}).get("value") or "")
    return int(value) if value.isdecimal() else None


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": shorten(strip_hidden_chars(text), MAX_LABEL_CHARS), "emoji": False}


def _section(text: str) -> Block:
    words = escape_within(strip_hidden_chars(text), MAX_SECTION_CHARS)
    return {"type": "section", "text": {"type": "mrkdwn", "text": words, "verbatim": True}}
