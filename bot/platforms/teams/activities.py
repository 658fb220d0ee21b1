"""Parses verified Bot Framework activities into messages, joins and leaves."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import IncomingMessage
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.question_actions import read_question_click
from storage.models import ChannelKey, Platform

Json = Mapping[str, Any]

TEAMS = Platform("teams")

# Teams' markup of a mention: <at>Footnote</at>.
_TAG = re.compile(r"</?at[^>]*>")
_SPACES = re.compile(r" {2,}")


# ``type`` and ``eventType`` of an edited message.
EDITED = ("messageUpdate", "editMessage")


def is_edit(activity: Json) -> bool:
    """True if an activity is an edit of a message; its text is the new one."""
    return (activity.get("type"), part(activity, "channelData").get("eventType")) == EDITED


def read_activity(activity: Json, home: str | None = None) -> IncomingMessage | None:
    """Return the question in a message activity, or None if it asks us nothing.

    In a personal chat every message asks; elsewhere only one that mentions the bot or clicks a question, even
    if the tenant lets the bot read all messages.

    ``home``: the Entra tenant whose personal chats count as direct chats; None: every tenant.
    """
    place = place_of(activity, home)
    is_said = activity.get("type") == "message" or is_edit(activity)
    if not is_said or place is None or not activity.get("id"):
        return None
    mentions, clicked = _mentions(activity), read_question_click(activity, place.key.tenant)
    is_mentioned = any(is_ours for _, is_ours in mentions)
    where, text = place.address.conversation, str(activity.get("text") or "")
    # A message with a value but no text is a click on a card; one that no parser knows asks nothing.
    is_for_us = place.address.is_personal and (bool(text) or not activity.get("value"))
    if not is_mentioned and clicked is None and not is_for_us:
        return None
    key = f"{place.key.installation}:{where}:{activity['id']}"
    return IncomingMessage(
        key=place.key,
        channel_name=channel_name(activity),
        event_key=key,
        message_key=key,
        # A channel post opens a thread, named by ";messageid="; a chat is one running conversation.
        thread=where if ";messageid=" in where else "",
        text=replace_invalid_chars(clicked or plain_text(text, [one for one, _ in mentions])),
        address=replace(
            place.address, asker=asker_of(activity, place.key), asked=replace_invalid_chars(clicked or "")
        ).to_json(),
        is_direct=place.is_direct,
    )


def read_join(activity: Json, home: str | None = None) -> TeamsPlace | None:
    """Return the conversation that the bot was added to; None for other activities.

    Teams sends both ``installationUpdate`` and ``conversationUpdate``. ``home``: as in ``read_activity``.
    """
    kind, bot = activity.get("type"), part(activity, "recipient").get("id")
    members = activity.get("membersAdded")
    is_installed = kind == "installationUpdate" and activity.get("action") == "add"
    is_member = kind == "conversationUpdate" and any(
        isinstance(one, Mapping) and bot and one.get("id") == bot
        for one in (members if isinstance(members, list) else ())
    )
    place = place_of(activity, home)
    return place if is_installed or is_member else None


def read_leave(activity: Json, home: str | None = None) -> ChannelKey | None:
    """Return the conversation that the bot has left or that was deleted; None for other activities."""
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
    # Teams reports a deleted channel in the first channel of its team; channelData names the deleted one.
    deleted = part(activity, "channelData", "channel").get("id")
    if kind == "conversationUpdate" and about.get("eventType") == "channelDeleted" and deleted:
        return place.key._replace(conversation=str(deleted))
    is_removed |= kind == "conversationUpdate" and about.get("eventType") == "teamDeleted"
    return place.key if is_removed else None


class TeamsPlace(NamedTuple):
    """Conversation of an activity, with its channel key and reply address."""

    key: ChannelKey
    is_direct: bool
    address: TeamsAddress


class PersonalChat(NamedTuple):
    """Members of the bot's personal chat with one person, by their Bot Framework ids."""

    bot: str
    member: str
    # Entra tenant id.
    tenant: str


def place_of(activity: Json, home: str | None) -> TeamsPlace | None:
    """Return where an activity happened: all threads of a channel share a key, each chat has its own.

    None if the activity names no tenant or no conversation.
    """
    tenant, conversation = tenant_of(activity), part(activity, "conversation")
    if not (tenant and conversation.get("id")):
        return None
    where = str(conversation["id"])
    channel = str(part(activity, "channelData", "channel").get("id") or where).split(";messageid=", 1)[0]
    is_personal = conversation.get("conversationType") == "personal"
    return TeamsPlace(
        ChannelKey(TEAMS, tenant, channel),
        is_personal and home in (None, tenant),
        TeamsAddress(str(activity.get("serviceUrl") or ""), where, is_personal=is_personal),
    )


def tenant_of(activity: Json) -> str:
    """Return the Entra tenant id; '' if the activity names none."""
    named = part(activity, "channelData", "tenant").get("id")
    return str(named or part(activity, "conversation").get("tenantId") or "")


def plain_text(text: str, mentions: Sequence[str]) -> str:
    """Return the message's plain text without these mentions, as Teams marks them up."""
    for mention in filter(None, mentions):
        text = text.replace(mention, " ")
    bare = html.unescape(_TAG.sub("", text)).replace("\N{NO-BREAK SPACE}", " ")
    return _SPACES.sub(" ", bare).strip()


def asker_of(activity: Json, key: ChannelKey) -> str:
    """Return a person's id as in FOOTNOTE_ADMINS, with their Entra object id; '' if that is missing."""
    person = str(part(activity, "from").get("aadObjectId") or "")
    return f"{TEAMS}:{key.installation}:{person}" if person else ""


def channel_name(activity: Json) -> str | None:
    """Return the display name of the channel or group chat, if the activity has one."""
    parts = part(activity, "channelData", "channel"), part(activity, "conversation")
    names = (one.get("name") for one in parts)
    return next((replace_invalid_chars(name) for name in names if isinstance(name, str) and name), None)


def _mentions(activity: Json) -> list[tuple[str, bool]]:
    """Return (text, True if of the bot) of each mention that is no word of a question: not of people."""
    bot, found = part(activity, "recipient").get("id"), []
    entities = activity.get("entities")
    for entity in entities if isinstance(entities, list) else []:
        if isinstance(entity, Mapping) and entity.get("type") == "mention":
            mentioned = part(entity, "mentioned")
            is_ours = bool(bot) and mentioned.get("id") == bot
            if is_ours or mentioned.get("type") == "tag" or str(mentioned.get("id")).startswith("19:"):
                found.append((str(entity.get("text") or ""), is_ours))
    return found


def part(value: Json, *names: str) -> Json:
    """Return the nested object at a path of keys; empty if any step is missing or not an object."""
    for name in names:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value
