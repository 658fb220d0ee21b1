"""Buttons that ask a question: as blocks, and as what a click on one asks.

A button belongs to the channel it was posted in: its block names the tenant, and a click that comes from
anywhere else asks nothing. Slack signs clicks, and only it can say who clicked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.core.notifications.notification_wording import ASK, TRY_ASKING
from bot.core.plaintext import mend, shorten, tame
from bot.core.ports import IncomingMessage
from bot.slack.blocks import Block, escape
from bot.slack.events import SLACK_ID, asker_of, installation_of
from storage.models import ChannelKey, Platform, TenantName

Json = Mapping[str, Any]

ACTION = re.compile(r"ask-\d")
MAX_QUESTION_CHARS = 500
"""Of a question on a button; tried ones have at most 140."""
_BLOCK = "ask:{place}:{tenant}"


def question_blocks(questions: Sequence[str], tenant: TenantName) -> list[Block]:
    """The questions, each with its button."""
    if not questions:
        return []
    asked = [(place, shorten(one, MAX_QUESTION_CHARS)) for place, one in enumerate(questions, start=1)]
    return [
        _section(TRY_ASKING),
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
    action: Json = (payload.get("actions") or [{}])[0]
    channel, ts, user = (
        str(part.get(name) or "")
        for part, name in (
            (payload.get("channel") or {}, "id"),
            (payload.get("message") or {}, "ts"),
            (payload.get("user") or {}, "id"),
        )
    )
    installation = installation_of_click(payload)
    if is_outsider(payload) or not all(map(SLACK_ID.fullmatch, (installation, channel, user))) or not ts:
        return None
    key = ChannelKey(Platform.SLACK, installation, channel)
    place = str(action.get("action_id") or "").removeprefix("ask-")
    text = mend(str(action.get("value") or ""))
    if not text or action.get("block_id") != _BLOCK.format(place=place, tenant=key.tenant):
        return None
    thread = str((payload.get("message") or {}).get("thread_ts") or ts)
    message_key = f"{installation}:{channel}:{ts}:{user}:{action.get('action_ts') or place}"
    asked = {"user": user, "text": text}
    return IncomingMessage(
        key=key,
        channel_name=None,
        event_key=message_key,
        message_key=message_key,
        thread=thread,
        text=text,
        address={
            "channel": channel,
            "ts": ts,
            "thread": thread,
            "key": message_key,
            "asked": asked,
            "asker": asker_of(installation, user),
        },
    )


def asked_line(address: Json) -> str:
    """Who asked what by a button, as mrkdwn; '' for a question that stands in the channel itself."""
    asked = address.get("asked")
    return f"<@{asked['user']}>: {escape(tame(asked['text']))}" if asked else ""


def asked_blocks(address: Json) -> list[Block]:
    """The same as the block above an answer."""
    line = asked_line(address)
    text = {"type": "mrkdwn", "text": line, "verbatim": True}
    return [{"type": "context", "block_id": "asked", "elements": [text]}] if line else []


def is_outsider(payload: Json) -> bool:
    """Whether somebody of another workspace clicks; inside an organisation everybody is at home."""
    home, own = ((payload.get(name) or {}).get(id) for name, id in (("team", "id"), ("user", "team_id")))
    return not payload.get("enterprise") and own not in (None, home)


def installation_of_click(payload: Json) -> str:
    """The installation that an interaction came to."""
    ids = {f"{name}_id": (payload.get(name) or {}).get("id") for name in ("team", "enterprise")}
    return installation_of({**ids, "is_enterprise_install": payload.get("is_enterprise_install")})


def _section(text: str) -> Block:
    words = {"type": "mrkdwn", "text": escape(tame(text)), "verbatim": True}
    return {"type": "section", "text": words}
