"""Reply addresses as stored: the keys that the storage and messages in flight rely on."""

from __future__ import annotations

from typing import Any

import pytest

from bot.platforms.teams.address import TeamsAddress
from storage.chat.answer_sources import NOTE

PLACE = {"service_url": "https://smba.example/", "conversation": "19:c;messageid=5"}


@pytest.mark.parametrize(
    "stored",
    [
        PLACE,
        PLACE | {"asker": ""},
        PLACE | {"is_personal": True, "asker": "teams:t:ann", "asked": "When?"},
        PLACE | {"asker": "teams:t:ann", "is_private": True},
    ],
    ids=["without a question", "of an unknown person", "by a button", "privately"],
)
def test_a_stored_address_survives_reading(stored: dict[str, Any]) -> None:
    """No key is renamed, lost or added; those of storage are ignored."""
    assert TeamsAddress.from_json(stored | {NOTE: {"page": 1}}).to_json() == stored


def test_a_channels_address_has_no_thread() -> None:
    """The connector's URL stays the same."""
    address = TeamsAddress.from_json(PLACE)
    assert address.without_thread().conversation == "19:c"
    assert address.without_thread().conversations_url == "https://smba.example/v3/conversations"
