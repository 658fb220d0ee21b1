"""Reads a verified Bot Framework activity: does it ask something, where, and in which words."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from bot.core.plaintext import mend
from bot.core.ports import IncomingMessage
from storage.models import ChannelKey, Platform

Json = Mapping[str, Any]

_TAG = re.compile(r"</?at[^>]*>")


def read_activity(activity: Json, home: str | None = None) -> IncomingMessage | None:
    """The question in a message, or None when nobody asks us anything.

    In a personal chat every message asks; elsewhere only one that mentions the bot, even where the
    tenant lets the bot read all of them.

    ``home``: the Entra tenant whose people's personal chats are direct chats; None: every tenant's.
    """
    tenant, conversation = tenant_of(activity), _part(activity, "conversation")
    if activity.get("type") != "message" or not (tenant and conversation.get("id") and activity.get("id")):
        return None
    mention = _mention(activity)
    is_personal = conversation.get("conversationType") == "personal"
    if mention is None and not is_personal:
        return None
    where = str(conversation["id"])
    key = f"{tenant}:{where}:{activity['id']}"
    # A channel is one for all its threads; a group or personal chat is one for itself.
    channel = str(_part(activity, "channelData", "channel").get("id") or where).split(";messageid=", 1)[0]
    return IncomingMessage(
        key=ChannelKey(Platform.TEAMS, tenant, channel),
        channel_name=_channel_name(activity),
        event_key=key,
        message_key=key,
        # A post in a channel opens a thread, which its id names; what is said in a chat goes on and on.
        thread=where if ";messageid=" in where else "",
        text=mend(plain_text(str(activity.get("text") or ""), mention or "")),
        address={"service_url": str(activity.get("serviceUrl") or ""), "conversation": where},
        is_direct=is_personal and home in (None, tenant),
    )


def tenant_of(activity: Json) -> str:
    """The Entra tenant, or '' when the envelope names none."""
    named = _part(activity, "channelData", "tenant").get("id")
    return str(named or _part(activity, "conversation").get("tenantId") or "")


def plain_text(text: str, mention: str) -> str:
    """What the person wrote, without one ``mention`` of the bot; the bot's name elsewhere stays."""
    bare = _TAG.sub("", text.replace(mention, " ", 1) if mention else text)
    return html.unescape(bare).replace("\N{NO-BREAK SPACE}", " ").strip()


def _channel_name(activity: Json) -> str | None:
    parts = _part(activity, "channelData", "channel"), _part(activity, "conversation")
    names = (part.get("name") for part in parts)
    return next((mend(name) for name in names if isinstance(name, str) and name), None)


def _mention(activity: Json) -> str | None:
    """The text by which the message mentions the bot."""
    bot = _part(activity, "recipient").get("id")
    entities = activity.get("entities")
    for entity in entities if isinstance(entities, list) else []:
        if isinstance(entity, Mapping) and entity.get("type") == "mention":
            if bot and _part(entity, "mentioned").get("id") == bot:
                return str(entity.get("text") or "")
    return None


def _part(value: Json, *names: str) -> Json:
    """An object inside an activity; empty when anything on the way is missing or something else."""
    for name in names:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value
