"""What is taken from an activity whose fields are not what they should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.teams.activities import read_activity


def activity(**fields: Any) -> dict[str, Any]:
    """A question in a personal chat, with ``fields`` changed."""
    conversation = {"id": "a:1", "conversationType": "personal", "tenantId": "t"}
    return {"type": "message", "id": "1", "conversation": conversation, "text": "when?"} | fields


def test_characters_that_no_database_keeps_are_replaced() -> None:
    """Half a surrogate pair and NUL, in a text or a name, do not make Teams deliver it again for ever."""
    said = json.loads(r'{"text": "when \ud83d do\u0000 backups run \ud83d\ude00?"}')
    channel = {"id": "19:c", "name": "IT \udc00"}
    message = read_activity(activity(**said, channelData={"channel": channel}))
    assert message
    assert message.text == "when \ufffd do\ufffd backups run \N{GRINNING FACE}?"
    assert message.channel_name == "IT \ufffd"


@pytest.mark.parametrize("name", [7, ["IT"], {"name": "IT"}, None, ""])
def test_a_name_that_is_no_text_is_none(name: object) -> None:
    """A channel without a name of its own takes the conversation's, if that one is a text."""
    plain = activity(channelData={"channel": {"id": "19:c", "name": name}})
    named, unnamed = dict(plain["conversation"], name="Ops"), dict(plain["conversation"], name=name)
    messages = [read_activity(plain | {"conversation": one}) for one in (named, unnamed)]
    assert [message and message.channel_name for message in messages] == ["Ops", None]


@pytest.mark.parametrize(
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
    """A library is for our own people: who writes to a multi-tenant bot from elsewhere does not ask it."""
    mention = {"type": "mention", "mentioned": {"id": "bot"}, "text": "<at>bot</at>"}
    conversation = {"id": "a:1", "conversationType": kind, "tenantId": "t"}
    said = activity(conversation=conversation, recipient={"id": "bot"}, entities=[mention])
    message = read_activity(said, home)
    assert message
    assert message.is_direct is is_direct
