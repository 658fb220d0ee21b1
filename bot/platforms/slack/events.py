"""Parses verified Slack events into messages, edits, deletions, joins, leaves and stop requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import IncomingMessage, StopRequest
from bot.platforms.slack.address import SLACK, SlackAddress
from bot.platforms.slack.message_text import plain_text, text_of
from storage.models import ChannelKey

Json = Mapping[str, Any]

# Id of a workspace, a channel or a user.
SLACK_ID = re.compile(r"[A-Z0-9]{2,24}")
# Timestamp of a message or an event, in seconds.
_TS = re.compile(r"\d{1,12}\.\d{1,8}")
_BROADCAST = "thread_broadcast"
# Subtypes that a person writes: plain message, with files, "/me ...", reply also sent to the channel.
_SAID = (None, "file_share", "me_message", _BROADCAST)
# Mentions of users, user groups, or @here, @channel and @everyone.
_OTHERS = re.compile(r"<(?:@|!(?:subteam|here|channel|everyone)\b)")


def read_event(envelope: Json, *, follow_ups: bool = True) -> IncomingMessage | None:
    """Return the question in an ``event_callback``, or None if it asks us nothing.

    Ignored are edits, other subtypes, bots (including ourselves) and people of other organisations in a
    shared channel. In a channel only a mention asks, with ``follow_ups`` also a thread reply that mentions
    nobody and is not broadcast to the channel; whether we take part in its thread is checked later
    (``is_unaddressed``).
    """
    message, event = read_message(envelope), event_of(envelope)[0]
    if message and message.is_unaddressed and not (follow_ups and _may_follow_up(event)):
        return None
    return message


def read_message(envelope: Json) -> IncomingMessage | None:
    """Return any message by a person of our organisation, to us or to others; None for other events."""
    event, authorization = event_of(envelope)
    bot, key = str(authorization.get("user_id") or ""), channel_of(envelope)
    ts = str(event.get("ts") or "")
    if not _is_said_by_a_person(event, bot) or is_outsider(envelope) or key is None or not ts:
        return None
    _, installation, channel = key
    message_key = f"{installation}:{channel}:{ts}"
    # A question in a channel opens a thread, where we answer; a direct chat is one running conversation.
    thread = event.get("thread_ts") or (None if event.get("channel_type") == "im" else ts)
    home = event.get("user_team") or event.get("team") or authorization.get("team_id")
    return IncomingMessage(
        key=key,
        channel_name=None,
        event_key=f"{installation}:{envelope.get('event_id') or message_key}",
        message_key=message_key,
        thread=str(thread or ""),
        text=replace_invalid_chars(plain_text(text_of(event), bot)),
        address=SlackAddress(
            channel, message_key, ts, thread, user=str(event["user"]), team=home, bot=bot
        ).to_json(),
        is_direct=event["channel_type"] == "im" if event.get("channel_type") else None,
        is_unaddressed=not _is_addressed(event, bot),
    )


def read_outsider(envelope: Json) -> tuple[dict[str, str], str] | None:
    """Return (arguments of chat.postEphemeral, text) if a person of another organisation mentions us."""
    event, authorization = event_of(envelope)
    bot = str(authorization.get("user_id") or "")
    if not (_is_said_by_a_person(event, bot) and _is_addressed(event, bot)):
        return None
    if event.get("type") != "app_mention" or not is_outsider(envelope):
        return None  # Slack sends a mention as "message", too: reply to one of the two
    place = {"channel": str(event.get("channel") or ""), "user": str(event["user"])}
    thread = event.get("thread_ts")
    return place | ({"thread_ts": str(thread)} if thread else {}), plain_text(text_of(event), bot)


def read_edit(envelope: Json, *, follow_ups: bool = True) -> IncomingMessage | None:
    """Return the question in a ``message_changed`` event; None if it asks nothing or its text is the same."""
    event: Json = envelope.get("event") or {}
    message, before = event.get("message") or {}, event.get("previous_message") or {}
    if event.get("subtype") != "message_changed" or text_of(message) == text_of(before):
        return None
    said = {name: value for name, value in message.items() if name != "edited"}
    place = {"type": "message", "channel": event.get("channel"), "channel_type": event.get("channel_type")}
    return read_event({**envelope, "event": {**said, **place}}, follow_ups=follow_ups)


def adds_mention(envelope: Json) -> bool:
    """True if an edit mentions us and the text before it did not: it asks for the first time."""
    event, authorization = event_of(envelope)
    bot = str(authorization.get("user_id") or "")
    texts = (text_of(event.get(one) or {}) for one in ("message", "previous_message"))
    return event.get("channel_type") != "im" and [_mentions(one, bot) for one in texts] == [True, False]


def read_withdrawal(envelope: Json) -> str | None:
    """Return the key of a deleted message; None for other events.

    A deleted message that has replies arrives as ``message_changed`` into a tombstone.
    """
    event, authorization = event_of(envelope)
    message: Json = event.get("message") or {}
    if event.get("subtype") == "message_deleted":
        ts = event.get("deleted_ts")
    elif event.get("subtype") == "message_changed" and message.get("subtype") == "tombstone":
        ts = message.get("ts")
    else:
        return None
    return f"{installation_of(authorization)}:{event.get('channel')}:{ts}"


def read_join(envelope: Json) -> ChannelKey | None:
    """Return the channel that the bot was added to; None for other events."""
    event, authorization = event_of(envelope)
    is_ours = bool(event.get("user")) and event["user"] == authorization.get("user_id")
    return channel_of(envelope) if event.get("type") == "member_joined_channel" and is_ours else None


# A person pressed Slack's Stop button while an answer was in progress in a thread.
STOPPED = "agent_session_stopped"


def read_stop(envelope: Json) -> StopRequest | None:
    """Return which answers to stop, those asked in the thread before the event; None for other events."""
    event, key = event_of(envelope)[0], channel_of(envelope)
    thread, stamp = (str(event.get(name) or "") for name in ("thread_ts", "event_ts"))
    if event.get("type") != STOPPED or key is None or not all(map(_TS.fullmatch, (thread, stamp))):
        return None

    def covers(address: Json) -> bool:
        asked = SlackAddress.from_json(address)  # private questions are not part of the thread
        return not asked.is_private and float(asked.ts) < float(stamp)

    return StopRequest(key, thread, f"{key.installation}:{key.conversation}:{thread}", covers)


# The bot was removed from a channel, or the channel was deleted.
LEFT = ("channel_left", "group_left", "channel_deleted", "group_deleted")


def read_leave(envelope: Json) -> ChannelKey | None:
    """Return the channel that the bot has left; None for other events."""
    return channel_of(envelope) if event_of(envelope)[0].get("type") in LEFT else None


def event_of(envelope: Json) -> tuple[Json, Json]:
    """Return (event, authorization of the bot) of an envelope; empty where they are missing."""
    return envelope.get("event") or {}, (envelope.get("authorizations") or [{}])[0]


def channel_of(envelope: Json) -> ChannelKey | None:
    """Return the channel of an event; None if it names none, or no installation."""
    event, authorization = event_of(envelope)
    ids = installation_of(authorization), str(event.get("channel") or "")
    return ChannelKey(SLACK, *ids) if all(map(SLACK_ID.fullmatch, ids)) else None


def installation_of(authorization: Json) -> str:
    """Return the enterprise id of an org-wide installation, else the team id."""
    name = "enterprise_id" if authorization.get("is_enterprise_install") else "team_id"
    return str(authorization.get(name) or "")


def is_outsider(body: Json) -> bool:
    """True if an event, click, shortcut or command comes from a person of another workspace or organisation.

    Every parser of user input calls this. The field that names the person's team differs by payload:
    ``event.user_team`` or ``event.team``; ``user.team_id``, which is the organisation's id where there is one
    (Slack's "block_actions payload"); ``user_team_id`` next to a command's ``user_id``.
    """
    installed: Json = (body.get("authorizations") or [body])[0]
    team, enterprise, user, event = (body.get(name) or {} for name in ("team", "enterprise", "user", "event"))
    home = {installed.get("team_id"), installed.get("enterprise_id")}
    home |= {team.get("id"), team.get("enterprise_id"), enterprise.get("id")}
    own = event.get("user_team") or event.get("team") or user.get("team_id") or body.get("user_team_id")
    if body.get("is_ext_shared_channel"):
        return own is None or own not in home
    # Workspaces of one organisation share channels without that flag: a message may name any of their teams.
    is_message = event.get("type") in ("app_mention", "message")
    return own is not None and own not in home and not is_message


def message_url(address: Json, message: Json) -> str | None:
    """Return a message's permalink; None if it is ephemeral."""
    if "ts" not in message:
        return None
    asked = SlackAddress.from_json(address)
    channel, ts = str(message.get("channel") or asked.channel), str(message["ts"])
    inside = f"?thread_ts={asked.thread}&cid={channel}" if asked.thread and asked.thread != ts else ""
    return f"https://slack.com/archives/{quote(channel)}/p{ts.replace('.', '')}{inside}"


def _is_said_by_a_person(event: Json, bot: str) -> bool:
    if not event.get("user") or event["user"] == bot:
        return False
    if any(event.get(sign) for sign in ("bot_id", "bot_profile", "edited")):
        return False
    return event.get("type") in ("app_mention", "message") and event.get("subtype") in _SAID


def _is_addressed(event: Json, bot: str) -> bool:
    if event.get("type") == "app_mention" or event.get("channel_type") == "im":
        return True
    return _mentions(text_of(event), bot)


def _mentions(text: str, bot: str) -> bool:
    return bool(bot) and (f"<@{bot}>" in text or f"<@{bot}|" in text)


def _may_follow_up(event: Json) -> bool:
    """True if it is a thread reply without mentions: a reply that mentions others is meant for them."""
    is_reply = event.get("thread_ts") not in (None, event.get("ts")) and event.get("subtype") != _BROADCAST
    return is_reply and not _OTHERS.search(text_of(event))
