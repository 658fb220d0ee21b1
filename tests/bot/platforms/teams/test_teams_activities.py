"""Parsing of Teams activities with missing or malformed fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.tables import for_each

from bot.platforms.teams.activities import read_activity, read_join, read_leave
from bot.platforms.teams.question_actions import question_rows
from storage.models import ChannelKey, Platform


def activity(**fields: Any) -> dict[str, Any]:
    """Return a question in a personal chat, with ``fields`` changed."""
    conversation = {"id": "a:1", "conversationType": "personal", "tenantId": "t"}
    return {"type": "message", "id": "1", "conversation": conversation, "text": "when?"} | fields


def test_characters_that_no_database_stores_are_replaced() -> None:
    """A lone surrogate or NUL in a text or name must not make Teams redeliver for ever."""
    said = json.loads(r'{"text": "when \ud83d do\u0000 backups run \ud83d\ude00?"}')
    channel = {"id": "19:c", "name": "IT \udc00"}
    message = read_activity(activity(**said, channelData={"channel": channel}))
    assert message
    assert message.text == "when \ufffd do\ufffd backups run \N{GRINNING FACE}?"
    assert message.channel_name == "IT \ufffd"


@for_each("name", [7, ["IT"], {"name": "IT"}, None, ""])
def test_a_name_that_is_no_string_is_ignored(name: object) -> None:
    """A channel without a valid name gets the conversation's name, if that is a string."""
    plain = activity(channelData={"channel": {"id": "19:c", "name": name}})
    named, unnamed = dict(plain["conversation"], name="Ops"), dict(plain["conversation"], name=name)
    messages = [read_activity(plain | {"conversation": one}) for one in (named, unnamed)]
    assert [message and message.channel_name for message in messages] == ["Ops", None]


@for_each(
    ("kind", "home", "is_direct"),
    [
        ("personal", None, True),
        ("personal", "t", True),
        ("personal", "another", False),
        ("personal", "", False),
        ("groupChat", None, False),
        ("channel", "t", False),
    ],
)
def test_a_personal_chat_of_our_own_tenant_is_direct(kind: str, home: str | None, is_direct: bool) -> None:
    """Libraries are for our own tenant only: a person who writes from another one does not search them."""
    mention = {"type": "mention", "mentioned": {"id": "bot"}, "text": "<at>bot</at>"}
    conversation = {"id": "a:1", "conversationType": kind, "tenantId": "t"}
    said = activity(conversation=conversation, recipient={"id": "bot"}, entities=[mention])
    message = read_activity(said, home)
    assert message
    assert message.is_direct is is_direct


INSTALLED = {"type": "installationUpdate", "action": "add", "recipient": {"id": "28:bot"}}
ADDED = {"type": "conversationUpdate", "membersAdded": [{"id": "28:bot"}], "recipient": {"id": "28:bot"}}


@pytest.mark.parametrize("event", [INSTALLED, ADDED], ids=["installed", "added"])
def test_being_added_is_read_from_either_event(event: dict[str, Any]) -> None:
    """Reads the place, its type and the reply address; neither event asks a question."""
    added = activity(**event, serviceUrl="https://smba.example/")
    joined = read_join(added)
    assert joined
    assert (joined.key, joined.is_direct) == (ChannelKey(Platform("teams"), "t", "a:1"), True)
    reached = {"service_url": "https://smba.example/", "conversation": "a:1"}
    assert joined.address.to_json() == reached | {"is_personal": True}
    assert not (read_join(added, home="another") or joined).is_direct
    assert read_activity(added) is None


@for_each(
    "change",
    [
        {"type": "message"},
        {"action": "remove"},
        {"type": "conversationUpdate", "membersAdded": [{"id": "29:somebody"}]},
        {"type": "conversationUpdate", "membersAdded": "28:bot"},
        {"type": "conversationUpdate", "membersAdded": [None], "recipient": {}},
        {"type": "conversationUpdate", "membersRemoved": [{"id": "28:bot"}]},
        {"conversation": {"conversationType": "personal", "id": "a:1"}},
    ],
)
def test_other_events_are_no_installation(change: dict[str, Any]) -> None:
    """Joins of other people, our removal, a missing tenant and malformed fields are ignored."""
    assert read_join(activity(**INSTALLED) | change) is None


def test_a_click_asks_only_where_its_button_was_posted() -> None:
    """A click in a channel needs no mention; forwarded, forged or malformed clicks ask nothing."""
    channel = {"id": "19:c;messageid=5", "conversationType": "channel", "tenantId": "t"}
    tenant = ChannelKey(Platform("teams"), "t", "19:c").tenant
    _, row = question_rows(["When do *backups* run?"], tenant)
    (button,) = row["columns"][1]["items"][0]["actions"]
    clicked = activity(conversation=channel, value=button["data"], text="")
    message = read_activity(clicked)
    assert message
    assert (message.text, message.key.tenant) == ("When do *backups* run?", tenant)
    assert message.address["conversation"] == "19:c;messageid=5"
    assert message.address["asker"] == ""
    assert message.address["asked"] == message.text
    for value in ({**button["data"], "tenant": "ms_other"}, {**button["data"], "asks": ""}, ["asks"], "asks"):
        assert read_activity(clicked | {"value": value}) is None
    elsewhere = dict(channel, id="19:d;messageid=5")
    assert read_activity(clicked | {"conversation": elsewhere}) is None


def test_a_person_is_identified_by_tenant_and_object_id() -> None:
    """Shows the id form of FOOTNOTE_ADMINS, and an empty asker if Teams names no person."""
    said = read_activity(activity(**{"from": {"id": "29:x", "aadObjectId": "0-1"}}))
    unknown = read_activity(activity(**{"from": {"id": "29:x"}}))
    assert said
    assert unknown
    assert (said.address["asker"], unknown.address["asker"]) == ("teams:t:0-1", "")


@for_each(
    ("change", "left"),
    [
        ({"type": "installationUpdate", "action": "remove"}, "a:1"),
        ({"type": "conversationUpdate", "membersRemoved": [{"id": "28:bot"}]}, "a:1"),
        ({"type": "conversationUpdate", "channelData": {"eventType": "teamDeleted"}}, "a:1"),
        (
            {
                "type": "conversationUpdate",
                "channelData": {"eventType": "channelDeleted", "channel": {"id": "19:gone"}},
            },
            "19:gone",
        ),
        ({"type": "installationUpdate", "action": "add"}, None),
        ({"type": "conversationUpdate", "membersRemoved": [{"id": "29:somebody"}]}, None),
        ({"type": "conversationUpdate", "membersRemoved": "28:bot"}, None),
        ({"type": "message", "channelData": {"eventType": "channelDeleted"}}, None),
    ],
)
def test_only_our_own_removal_and_a_deleted_channel_are_leaving(
    change: dict[str, Any], left: str | None
) -> None:
    """Shows which channel is erased after the grace period: never the one where Teams merely reports it."""
    key = read_leave(activity(recipient={"id": "28:bot"}) | change)
    assert key == (ChannelKey(Platform("teams"), "t", left) if left else None)
