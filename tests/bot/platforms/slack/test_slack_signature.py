"""Signed events over HTTP: committed before they are acknowledged; unsigned requests are refused."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlencode

import pytest
from harness.waiting import until_true

from storage.errors import DatabaseUnavailable

EVENT: dict[str, Any] = {
    "type": "event_callback",
    "event_id": "Ev1",
    "authorizations": [{"team_id": "T0ACME001", "user_id": "U0FOOT001", "is_enterprise_install": False}],
    "event": {
        "type": "app_mention",
        "channel": "C0ITOPS01",
        "user": "U0ALICE01",
        "ts": "17.0001",
        "text": "<@U0FOOT001> when do canary backups run?",
    },
}


async def test_an_event_is_stored_before_it_is_acknowledged(street: Any) -> None:
    """The response is sent only after the commit."""
    street.inbox.gate = asyncio.Event()
    sending = asyncio.create_task(street.send(EVENT))
    await until_true(lambda: street.inbox.arrivals)
    assert not sending.done()
    street.inbox.gate.set()
    assert await sending == 200
    assert len(street.inbox.kept) == 1


async def test_slack_retries_an_event_that_could_not_be_stored(
    street: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """With the database down the response is 503, so Slack retries; no text of the question is logged."""
    street.inbox.failure = DatabaseUnavailable("disk full while keeping canary backups")
    with caplog.at_level(logging.DEBUG):
        assert await street.send(EVENT) == 503
    assert "canary" not in caplog.text
    street.inbox.failure = None
    assert await street.send(EVENT) == 200
    assert len(street.inbox.kept) == 1


async def test_a_repeated_event_reaches_the_inbox_with_the_same_key(street: Any) -> None:
    """Slack's retry is acknowledged and deduplicated by its key."""
    assert [await street.send(EVENT), await street.send(EVENT)] == [200, 200]
    assert (street.inbox.arrivals, len(street.inbox.kept)) == (2, 1)


async def test_events_outside_the_manifest_are_ignored(street: Any) -> None:
    """Shows that an event is handled only if the app manifest subscribes to it: here a deletion."""
    assert await street.send(EVENT) == 200
    deleted = {"subtype": "message_deleted", "channel": "C0ITOPS01", "deleted_ts": "17.0001"}
    for kind, kept in (("message_metadata_deleted", 1), ("message", 0)):
        assert await street.send(EVENT | {"event": deleted | {"type": kind}}) == 200
        assert len(street.inbox.kept) == kept


async def test_other_events_are_acknowledged_and_dropped(street: Any) -> None:
    """Unknown events are no error."""
    assert await street.send(EVENT | {"event": {"type": "channel_rename"}}) == 200
    assert street.inbox.arrivals == 0


async def test_the_url_is_verified(street: Any, sign: Any) -> None:
    """Echoes Slack's challenge when an admin enters the request URL."""
    body = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    headers = {name.replace("_", "-"): value for name, value in sign(body).items()}
    headers["Content-Type"] = "application/json"
    async with street.session.post(street.url, data=body, headers=headers) as response:
        assert await response.json() == {"challenge": "abc"}


async def test_a_click_on_a_source_button_is_acknowledged(street: Any, sign: Any) -> None:
    """Slack reports clicks on URL buttons, and shows a warning if we do not acknowledge them."""
    action = {"type": "button", "action_id": "source-3", "block_id": "sources", "action_ts": "1.0"}
    payload = {
        "type": "block_actions",
        "team": {"id": "T0ACME001"},
        "user": {"id": "U1"},
        "actions": [action],
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    status = await street.post(body, Content_Type="application/x-www-form-urlencoded", **sign(body))
    assert status == 200


@pytest.mark.parametrize(("age", "status"), [(200, 200), (-200, 200), (301, 401), (-600, 401), (600, 401)])
async def test_a_signature_is_good_for_five_minutes(street: Any, age: int, status: int) -> None:
    """An old recording, or a clock far ahead, is refused."""
    assert await street.send(EVENT, age=age) == status


async def test_an_old_recording_is_not_even_parsed(street: Any, sign: Any) -> None:
    """Shows that age is checked before the body: an expired signature counts as none."""
    assert await street.post(b"{", Content_Type="application/json", **sign(b"{", age=600)) == 401


async def test_a_signature_by_another_secret_is_refused(street: Any) -> None:
    """Without the signing secret no request is accepted."""
    assert await street.send(EVENT, secret="guessed") == 401
    assert street.inbox.arrivals == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X_Slack_Request_Timestamp": "now", "X_Slack_Signature": "v0=00"},
        {"X_Slack_Request_Timestamp": "1e9", "X_Slack_Signature": "v0=00"},
        {"X_Slack_Request_Timestamp": "9" * 40, "X_Slack_Signature": "v0=00"},
        {"X_Slack_Request_Timestamp": "1700000000", "X_Slack_Signature": "v0=ümläut"},
        {"X_Slack_Request_Timestamp": "1700000000"},
    ],
    ids=str,
)
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 50_000])
async def test_a_scanner_is_refused_whatever_it_sends(
    street: Any, headers: dict[str, str], body: bytes
) -> None:
    """Unsigned bodies are never parsed, so the response is always 401."""
    assert await street.post(body, Content_Type="application/json", **headers) == 401


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"a":' * 50_000,
        b'{"a":' * 60 + b"1" + b"}" * 60,
        *(
            json.dumps(EVENT | odd).encode()
            for odd in (
                {"authorizations": "x"},
                {"authorizations": ["x"]},
                {"authorizations": {"team_id": "T0ACME001"}},
                {"event": "x"},
                {"event": []},
                {"event": False},
                {"event": EVENT["event"] | {"type": "link_shared", "links": ["x"]}},
                {"authorizations": ""},
                {"type": "block_actions", "user": [], "event": None},
                {"type": "block_actions", "actions": {}, "event": None},
                {"event": EVENT["event"] | {"subtype": "message_changed", "message": "x"}},
                {"event": EVENT["event"] | {"type": "tokens_revoked", "tokens": ["x"]}},
                {"event": EVENT["event"] | {"subtype": "file_share", "files": ["x"]}},
                {"event": EVENT["event"] | {"type": ["x"]}},
                {"event": EVENT["event"] | {"user_team": [["x"]]}},
                {"event": None},
                {"authorizations": [{"team_id": ["x"]}]},
                {"type": "block_actions", "actions": [], "event": None},
                {"type": "block_actions", "actions": [{}], "event": None},
                {"type": "block_actions", "actions": [{"action_id": 7}], "event": None},
                {"type": "block_actions", "actions": [{"action_id": "x"}], "team": {"id": ["x"]}},
            )
        ),
    ],
    ids=lambda body: repr(body[-24:]),
)
async def test_a_signed_body_that_cannot_be_read_is_a_bad_request(
    street: Any, sign: Any, body: bytes
) -> None:
    """A signed but malformed body is not an error of ours."""
    assert await street.post(body, Content_Type="application/json", **sign(body)) == 400


async def test_a_form_without_an_interaction_is_a_bad_request(street: Any, sign: Any) -> None:
    """Shows it with an empty field, which the form parser would leave out."""
    form = b"payload="
    headers = {"Content_Type": "application/x-www-form-urlencoded", **sign(form)}
    assert await street.post(form, **headers) == 400


async def test_a_body_over_a_mebibyte_is_too_large(street: Any, sign: Any) -> None:
    """The size is checked before anything else."""
    body = b" " * (1 << 20) + b"{}"
    assert await street.post(body, Content_Type="application/json", **sign(body)) == 413
