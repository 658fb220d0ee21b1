"""Reply addresses as stored: the keys that the storage and messages in flight rely on."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.slack_events import BOT, envelope

from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.events import message_url, read_message
from storage.chat.answer_sources import NOTE
from storage.chat_models import PERSONAL_KEYS, UPLOAD_KEY

TYPED = {"channel": "C1", "ts": "17.1", "thread": "17.1", "key": "T1:C1:17.1"}
PERSON = {"user": "U1", "team": "T1", "bot": "UBOT", "asker": "slack:T1:U1"}
ASKED = {"user": "U1", "text": "When?", "channel": "C2"}
PRIVATE = {"channel": "C1", "key": "T1:C1:13", "response_url": "https://hooks.slack.example/x"}


@pytest.mark.parametrize(
    "stored",
    [
        TYPED | PERSON,
        TYPED | PERSON | {"channel": "D1", "thread": None},
        TYPED | {"user": "U1", "asked": ASKED, "asker": "slack:T1:U1"},
        PRIVATE | {"asked": {"user": "U1", "text": "When?"}, "is_acknowledged": False},
        PRIVATE | {"is_acknowledged": True},
    ],
    ids=["in a channel", "in a direct chat", "by a button", "privately", "privately, and erased"],
)
def test_an_address_is_stored_as_it_was_read(stored: dict[str, Any]) -> None:
    """No key is renamed, lost or added."""
    assert SlackAddress.from_json(stored).to_json() == stored


def test_a_message_stores_where_to_answer_and_who_asked() -> None:
    """Storage finds the asker and erases the personal keys by these names."""
    said = {"text": f"<@{BOT}> When?", "channel": "C0ITOPS01", "user": "U0ALICE01", "ts": "17.1"}
    message = read_message(envelope("Ev1", type="app_mention", **said))
    assert message
    assert message.address.keys() == TYPED.keys() | PERSON.keys()


def test_an_erased_address_still_leads_to_its_message() -> None:
    """Keys that storage added are ignored, and the personal ones may be missing."""
    stored = TYPED | PERSON | {"asked": ASKED, UPLOAD_KEY: {"id": "F1", "name": "a.pdf"}, NOTE: {"page": 1}}
    erased = {name: value for name, value in stored.items() if name not in PERSONAL_KEYS}
    address = SlackAddress.from_json(erased)
    assert (address.user, address.asked, address.upload) == ("", None, None)
    assert (address.installation, address.tenant) == ("T1", "sl_T1_C1")
    assert message_url(erased, {"ts": "17.2"}) == message_url(stored, {"ts": "17.2"})
