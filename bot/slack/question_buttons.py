"""Buttons that ask a question: as blocks, and as what a click on one asks.

A button belongs to the channel it was posted in: its block names the tenant, and a click that comes from
anywhere else asks nothing. In an App Home it asks the channel that its block names, and whoever takes the
click makes sure that the person is in it. Slack signs clicks, and only it can say who clicked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from bot.core.notifications.notification_wording import ASK, TRY_ASKING
from bot.core.plaintext import mend, shorten, tame
from bot.core.ports import IncomingMessage
from bot.slack.blocks import Block, escape
from bot.slack.events import SLACK_ID, asker_of, installation_of, is_outsider
from storage.models import ChannelKey, Platform, TenantName

Json = Mapping[str, Any]

ACTION = re.compile(r"ask-\d")
# Of a question on a button; tried ones have at most 140.
MAX_QUESTION_CHARS = 500
_BLOCK = "ask:{place}:{tenant}"


def question_blocks(questions: Sequence[str], tenant: TenantName, lead: str = TRY_ASKING) -> list[Block]:
    """Return the questions, each with its button, behind ``lead``."""
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
                    "accessibility_label": shorten(tame(question), 75),
                },
            }
            for place, question in asked
        ),
    ]


def read_question_click(payload: Json) -> IncomingMessage | None:
    """The question of a click in ``block_actions``; None when it comes from where its button is not."""
    channel, ts = (
        str((payload.get(part) or {}).get(name) or "")
        for part, name in (("channel", "id"), ("message", "ts"))
    )
    installation = installation_of_click(payload)
    if not ts or not SLACK_ID.fullmatch(channel):
        return None
    key = ChannelKey(Platform.SLACK, installation, channel)
    thread = str((payload.get("message") or {}).get("thread_ts") or ts)
    return _asked(payload, key, {"channel": channel, "ts": ts, "thread": thread})


def read_home_click(payload: Json) -> IncomingMessage | None:
    """Return the question of a click in an App Home, whose view names the person's direct chat with us.

    The answer goes to that chat. None when it is no click on a question there.
    """
    view: Json = payload.get("view") or {}
    direct = str(view.get("private_metadata") or "")
    action: Json = (payload.get("actions") or [{}])[0]
    conversation = str(action.get("block_id") or "").rpartition("_")[2]
    if view.get("type") != "home" or not all(map(SLACK_ID.fullmatch, (direct, conversation))):
        return None
    key = ChannelKey(Platform.SLACK, installation_of_click(payload), conversation)
    ts = str(action.get("action_ts") or "")
    return _asked(payload, key, {"channel": direct, "ts": ts, "thread": None}) if ts else None


def _asked(payload: Json, key: ChannelKey, place: dict[str, Any]) -> IncomingMessage | None:
    """The question on a button of this channel, to be answered at ``place``; None: it is of another one."""
    action: Json = (payload.get("actions") or [{}])[0]
    user = str((payload.get("user") or {}).get("id") or "")
    if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (key.installation, user))):
        return None
    number = str(action.get("action_id") or "").removeprefix("ask-")
    text = mend(str(action.get("value") or ""))
    if not text or action.get("block_id") != _BLOCK.format(place=number, tenant=key.tenant):
        return None
    stamp = action.get("action_ts") or number
    # Erasing a person leaves the key of what they asked, so it may not say who they are.
    click = sha256(f"{user}:{stamp}".encode()).hexdigest()
    message_key = f"{key.installation}:{place['channel']}:{place['ts']}:{click}"
    asked = {"user": user, "text": text}
    if place["channel"] != key.conversation:
        asked["channel"] = key.conversation
    return IncomingMessage(
        key=key,
        channel_name=None,
        event_key=message_key,
        message_key=message_key,
        thread=place["thread"] or f"home {stamp}",  # of its own: what is asked in a home leans on nothing
        text=text,
        address={
            **place,
            "key": message_key,
            "user": user,
            "asked": asked,
            "asker": asker_of(key.installation, user),
        },
    )


def asked_tenant(address: Json) -> TenantName:
    """Of the channel whose documents were asked; an address's key begins with the installation."""
    conversation = (address.get("asked") or {}).get("channel") or address["channel"]
    return ChannelKey(Platform.SLACK, address["key"].partition(":")[0], conversation).tenant


def asked_line(address: Json) -> str:
    """Who asked what by a button, as mrkdwn; '' for a question that stands in the channel itself."""
    asked = address.get("asked")
    if not asked:
        return ""
    place = f" <#{asked['channel']}>" if "channel" in asked else ""
    return f"<@{asked['user']}>{place}: {escape(tame(asked['text']))}"


def asked_blocks(address: Json) -> list[Block]:
    """Return the same as the block above an answer."""
    line = asked_line(address)
    text = {"type": "mrkdwn", "text": line, "verbatim": True}
    return [{"type": "context", "block_id": "asked", "elements": [text]}] if line else []


def installation_of_click(payload: Json) -> str:
    """Return the installation that an interaction came to."""
    ids = {f"{name}_id": (payload.get(name) or {}).get("id") for name in ("team", "enterprise")}
    return installation_of({**ids, "is_enterprise_install": payload.get("is_enterprise_install")})


def _section(text: str) -> Block:
    words = {"type": "mrkdwn", "text": escape(tame(text)), "verbatim": True}
    return {"type": "section", "text": words}
