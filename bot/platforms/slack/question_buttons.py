"""Buttons that ask a suggested question: their blocks, and parsing of clicks on them.

A button belongs to the channel it was posted in: its ``block_id`` names the tenant, and clicks from elsewhere
are ignored. In the App Home it asks the channel named by its ``block_id``; the caller must check that the
person is a member. The clicking user comes from Slack's signed payload.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from bot.chat.notifications.notification_wording import ASK, NEWS, TRY_ASKING
from bot.core.plaintext import replace_invalid_chars, shorten, strip_hidden_chars
from bot.core.ports import Announcement, IncomingMessage
from bot.platforms.slack.address import SLACK, ButtonQuestion, SlackAddress
from bot.platforms.slack.blocks import AnswerRow, Block, escape
from bot.platforms.slack.events import SLACK_ID, installation_of, is_outsider
from storage.models import ChannelKey, TenantName

Json = Mapping[str, Any]

# Of the App Home's field.
ASK_ACTION = "ask-home"
ACTION = re.compile(r"^ask-(?:\d|home)")
# Longest question on a button; suggested questions have at most 140 characters.
MAX_QUESTION_CHARS = 500
_BLOCK = "ask:{place}:{tenant}"


def question_blocks(questions: Sequence[str], tenant: TenantName, lead: str = TRY_ASKING) -> list[Block]:
    """Return the ``lead`` and a section with a button per question."""
    if not questions:
        return []
    asked = [(place, shorten(one, MAX_QUESTION_CHARS)) for place, one in enumerate(questions, start=1)]
    return [
        _section(lead),
        *(
            {
                **_section(f"• {question}"),
                "block_id": _BLOCK.format(place=place, tenant=tenant),
                "accessory": {
                    "type": "button",
                    "action_id": f"ask-{place}",
                    "text": {"type": "plain_text", "text": ASK, "emoji": False},
                    "value": question,
                    "accessibility_label": shorten(strip_hidden_chars(question), 75),
                },
            }
            for place, question in asked
        ),
    ]


def news_row(announcement: Announcement, tenant: TenantName) -> AnswerRow | None:
    """Return the row below a receipt: a button that asks what is new; None for other announcements."""
    if not announcement.asks_news:
        return None
    text = {"type": "plain_text", "text": NEWS, "emoji": False}
    button = {"type": "button", "action_id": "ask-1", "text": text, "value": announcement.asks_news}
    return AnswerRow(_BLOCK.format(place=1, tenant=tenant), (button,), "")


def read_question_click(payload: Json) -> IncomingMessage | None:
    """Parse a click in a message (``block_actions``); None if the button is not of that channel."""
    channel, ts = (
        str((payload.get(part) or {}).get(name) or "")
        for part, name in (("channel", "id"), ("message", "ts"))
    )
    installation = installation_of_click(payload)
    if not ts or not SLACK_ID.fullmatch(channel):
        return None
    key = ChannelKey(SLACK, installation, channel)
    thread = str((payload.get("message") or {}).get("thread_ts") or ts)
    return _asked(payload, key, channel, ts, thread)


def read_home_click(payload: Json) -> IncomingMessage | None:
    """Parse a click in the App Home; None if it is not a click on a question.

    The answer goes to the person's direct chat, which the view's ``private_metadata`` names.
    """
    view: Json = payload.get("view") or {}
    direct = str(view.get("private_metadata") or "")
    action: Json = (payload.get("actions") or [{}])[0]
    conversation = str(action.get("block_id") or "").rpartition("_")[2]
    if view.get("type") != "home" or not all(map(SLACK_ID.fullmatch, (direct, conversation))):
        return None
    key = ChannelKey(SLACK, installation_of_click(payload), conversation)
    ts = str(action.get("action_ts") or "")
    return _asked(payload, key, direct, ts, "") if ts else None


def read_home_question(payload: Json) -> IncomingMessage | None:
    """Parse what a person typed in the App Home: a question of their direct chat; None for others."""
    view, action = payload.get("view") or {}, (payload.get("actions") or [{}])[0]
    direct, user = (
        str(one or "") for one in (view.get("private_metadata"), (payload.get("user") or {}).get("id"))
    )
    stamp, key = str(action.get("action_ts") or ""), ChannelKey(SLACK, installation_of_click(payload), direct)
    is_typed = view.get("type") == "home" and action.get("action_id") == ASK_ACTION
    if not is_typed or is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (*key[1:], user))):
        return None
    text = replace_invalid_chars(str(action.get("value") or "")).strip()
    if not text or not stamp:
        return None
    message_key = f"{key.installation}:{direct}:{stamp}"
    asked = ButtonQuestion(user, text)
    return IncomingMessage(
        key=key,
        channel_name=None,
        event_key=message_key,
        message_key=message_key,
        thread="",
        text=text,
        address=SlackAddress(direct, message_key, stamp, None, user=user, asked=asked).to_json(),
        is_direct=True,
    )


def _asked(payload: Json, key: ChannelKey, channel: str, ts: str, thread: str) -> IncomingMessage | None:
    """Return the clicked question, to be answered in ``channel``; None if the button is of another one."""
    action: Json = (payload.get("actions") or [{}])[0]
    user = str((payload.get("user") or {}).get("id") or "")
    if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (key.installation, user))):
        return None
    number = str(action.get("action_id") or "").removeprefix("ask-")
    text = replace_invalid_chars(str(action.get("value") or ""))
    if not text or action.get("block_id") != _BLOCK.format(place=number, tenant=key.tenant):
        return None
    stamp = action.get("action_ts") or number
    # Keys survive the erasure of a person, so the user id goes in hashed.
    click = sha256(f"{user}:{stamp}".encode()).hexdigest()
    message_key = f"{key.installation}:{channel}:{ts}:{click}"
    asked = ButtonQuestion(user, text, None if channel == key.conversation else key.conversation)
    return IncomingMessage(
        key=key,
        channel_name=None,
        event_key=message_key,
        message_key=message_key,
        thread=thread or f"home {stamp}",  # its own thread: App Home questions have no context
        text=text,
        address=SlackAddress(channel, message_key, ts, thread or None, user=user, asked=asked).to_json(),
    )


def asked_line(address: SlackAddress) -> str:
    """Return the asker and question as mrkdwn; '' if the question was typed in the channel."""
    if (asked := address.asked) is None:
        return ""
    place = f" <#{asked.channel}>" if asked.channel else ""
    return f"<@{asked.user}>{place}: {escape(strip_hidden_chars(asked.text))}"


def asked_blocks(address: SlackAddress) -> list[Block]:
    """Return ``asked_line`` as a context block above the answer."""
    line = asked_line(address)
    text = {"type": "mrkdwn", "text": line, "verbatim": True}
    return [{"type": "context", "block_id": "asked", "elements": [text]}] if line else []


def installation_of_click(payload: Json) -> str:
    """Return the installation id of an interaction payload."""
    ids = {f"{name}_id": (payload.get(name) or {}).get("id") for name in ("team", "enterprise")}
    return installation_of({**ids, "is_enterprise_install": payload.get("is_enterprise_install")})


def _section(text: str) -> Block:
    words = {"type": "mrkdwn", "text": escape(strip_hidden_chars(text)), "verbatim": True}
    return {"type": "section", "text": words}
