"""Reads a verified Bot Framework activity: does it ask something, where, and in which words."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bot.core.plaintext import mend
from bot.core.ports import IncomingMessage
from bot.teams.question_actions import read_question_click
from storage.models import ChannelKey, Platform

Json = Mapping[str, Any]

_TAG = re.compile(r"</?at[^>]*>")


def read_activity(activity: Json, home: str | None = None) -> IncomingMessage | None:
    """Return the question in a message, or None when nobody asks us anything.

    In a personal chat every message asks; elsewhere only one that mentions the bot, even where the
    tenant lets the bot read all of them.

    ``home``: the Entra tenant whose people's personal chats are direct chats; None: every tenant's.
    """
    place = place_of(activity, home)
    if activity.get("type") != "message" or place is None or not activity.get("id"):
        return None
    mention, clicked = _mention(activity), read_question_click(activity, place.key.tenant)
    where, text = place.where, str(activity.get("text") or "")
    # In a personal chat only a click on a card that is not ours any more says nothing in words.
    is_for_us = place.is_personal and (bool(text) or not activity.get("value"))
    if mention is None and clicked is None and not is_for_us:
        return None
    key = f"{place.key.installation}:{where}:{activity['id']}"
    return IncomingMessage(
        key=place.key,
        channel_name=channel_name(activity),
        event_key=key,
        message_key=key,
        # A post in a channel opens a thread, which its id names; what is said in a chat goes on and on.
        thread=where if ";messageid=" in where else "",
        text=mend(clicked or plain_text(text, mention or "")),
        address=place.address
        | {"asker": asker_of(activity, place.key)}
        | ({"asked": mend(clicked)} if clicked else {}),
        is_direct=place.is_direct,
    )


def read_join(activity: Json, home: str | None = None) -> Joined | None:
    """Return the conversation that we ourselves were added to; None for anything else that happens.

    Teams says it twice, as an installation and as a new member. ``home``: as of a message.
    """
    kind, bot = activity.get("type"), part(activity, "recipient").get("id")
    members = activity.get("membersAdded")
    is_installed = kind == "installationUpdate" and activity.get("action") == "add"
    is_member = kind == "conversationUpdate" and any(
        isinstance(one, Mapping) and bot and one.get("id") == bot
        for one in (members if isinstance(members, list) else ())
    )
    place = place_of(activity, home)
    if place is None or not (is_installed or is_member):
        return None
    return Joined(place.key, channel_name(activity), place.is_direct, place.address)


def read_leave(activity: Json, home: str | None = None) -> ChannelKey | None:
    """Return the conversation that we are no more in, or that is gone; None for anything else that happens.

    Of a channel that was deleted Teams speaks in its team's first one: the channel itself is named beside.
    """
    kind, bot = activity.get("type"), part(activity, "recipient").get("id")
    members = activity.get("membersRemoved")
    is_removed = kind == "installationUpdate" and activity.get("action") == "remove"
    is_removed |= kind == "conversationUpdate" and any(
        isinstance(one, Mapping) and bot and one.get("id") == bot
        for one in (members if isinstance(members, list) else ())
    )
    about, place = part(activity, "channelData"), place_of(activity, home)
    if place is None:
        return None
    deleted = part(activity, "channelData", "channel").get("id")
    if kind == "conversationUpdate" and about.get("eventType") == "channelDeleted" and deleted:
        return place.key._replace(conversation=str(deleted))
    is_removed |= kind == "conversationUpdate" and about.get("eventType") == "teamDeleted"
    return place.key if is_removed else None


class Joined(NamedTuple):
    """A conversation that we were added to."""

    key: ChannelKey
    name: str | None
    is_direct: bool
    # As of a message.
    address: dict[str, Any]


class TeamsPlace(NamedTuple):
    """Where an activity happens."""

    key: ChannelKey
    # The conversation, in a channel with its thread.
    where: str
    is_personal: bool
    is_direct: bool
    address: dict[str, Any]


class PersonalChat(NamedTuple):
    """Who is in the bot's chat with one person: both by the ids that activities have for them."""

    bot: str
    member: str
    # The Entra tenant of both.
    tenant: str


def place_of(activity: Json, home: str | None) -> TeamsPlace | None:
    """Return a channel is one for all its threads; a group or personal chat is one for itself."""
    tenant, conversation = tenant_of(activity), part(activity, "conversation")
    if not (tenant and conversation.get("id")):
        return None
    where = str(conversation["id"])
    channel = str(part(activity, "channelData", "channel").get("id") or where).split(";messageid=", 1)[0]
    is_personal = conversation.get("conversationType") == "personal"
    return TeamsPlace(
        ChannelKey(Platform.TEAMS, tenant, channel),
        where,
        is_personal,
        is_personal and home in (None, tenant),
        {"service_url": str(activity.get("serviceUrl") or ""), "conversation": where}
        | ({"is_personal": True} if is_personal else {}),
    )


def tenant_of(activity: Json) -> str:
    """Return the Entra tenant, or '' when the envelope names none."""
    named = part(activity, "channelData", "tenant").get("id")
    return str(named or part(activity, "conversation").get("tenantId") or "")


def plain_text(text: str, mention: str) -> str:
    """What the person wrote, without one ``mention`` of the bot; the bot's name elsewhere stays."""
    bare = _TAG.sub("", text.replace(mention, " ", 1) if mention else text)
    return html.unescape(bare).replace("\N{NO-BREAK SPACE}", " ").strip()


def asker_of(activity: Json, key: ChannelKey) -> str:
    """The person, as FOOTNOTE_ADMINS names them: by their object id in Entra; '' where that is not said."""
    person = str(part(activity, "from").get("aadObjectId") or "")
    return f"{Platform.TEAMS}:{key.installation}:{person}" if person else ""


def channel_name(activity: Json) -> str | None:
    """What people call the channel or group chat."""
    parts = part(activity, "channelData", "channel"), part(activity, "conversation")
    names = (one.get("name") for one in parts)
    return next((mend(name) for name in names if isinstance(name, str) and name), None)


def _mention(activity: Json) -> str | None:
    """Return the text by which the message mentions the bot."""
    bot = part(activity, "recipient").get("id")
    entities = activity.get("entities")
    for entity in entities if isinstance(entities, list) else []:
        if isinstance(entity, Mapping) and entity.get("type") == "mention":
            if bot and part(entity, "mentioned").get("id") == bot:
                return str(entity.get("text") or "")
    return None


def part(value: Json, *names: str) -> Json:
    """Return an object inside an activity; empty when anything on the way is missing or something else."""
    for name in names:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value
