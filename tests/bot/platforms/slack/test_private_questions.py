"""Slash commands: their questions, sharing of the answer, and delivery to the asker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.slack_events import Signed
from harness.tables import for_each

from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.models import Answer, AnswerState, Citation, Language
from bot.core.ports import StoredAnswer
from bot.platforms.slack.address import ButtonQuestion, SlackAddress
from bot.platforms.slack.blocks import MAX_MESSAGE_CHARS
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.private_questions import (
    SHARE,
    SHORTCUT,
    acknowledgement,
    may_share,
    post_private_answer,
    read_command,
    read_share,
    read_shortcut,
    share_to_channel,
)
from bot.platforms.slack.web_api import web_client
from storage.models import ChannelKey, Platform

API = "https://slack.com/api/"
ANSWER = Answer(
    AnswerState.GROUNDED,
    "Daily [1].",
    (Citation(1, "Rules", "a.pdf", 2, "daily", (), "http://127.0.0.1:8765/v/x"),),
)


def form(**changed: str) -> dict[str, str]:
    """Return ``/footnote when do backups run?`` as Slack sends it, with fields changed."""
    return {
        "team_id": "T0ACME001",
        "channel_id": "C0ITOPS01",
        "user_id": "U0ALICE01",
        "command": "/footnote",
        "text": "when do backups run?",
        "is_enterprise_install": "false",
        "response_url": "https://hooks.slack.com/commands/1/2/3",
        "trigger_id": "13.17.abc",
        **changed,
    }


def test_a_command_asks_in_the_channel_that_it_was_typed_in() -> None:
    """Channel, person and text come from the signed form; no other person shares its thread."""
    message = read_command(form(), API)
    assert message
    assert message.key == ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
    assert message.text == "when do backups run?"
    assert message.thread == "private 13.17.abc"
    assert message.address["asked"] == {"user": "U0ALICE01", "text": "when do backups run?"}
    other = read_command(form(trigger_id="13.18.abc"), API)
    assert other
    assert other.message_key != message.message_key
    org_wide = read_command(form(is_enterprise_install="true", enterprise_id="E0ACME001"), API)
    assert org_wide
    assert org_wide.key.installation == "E0ACME001"


@pytest.mark.parametrize(
    ("typed", "asked"),
    [("", "help"), ("Documents", "list documents"), ("help", "help"), (" docs ", "list documents")],
)
def test_the_commands_own_words_are_those_of_the_chat(typed: str, asked: str) -> None:
    """An empty command asks for help."""
    message = read_command(form(text=typed), API)
    assert message
    assert message.text == asked


def shortcut(**changed: Any) -> dict[str, Any]:
    """Return Alice's "Ask about this" on a message of Bob's, with fields changed."""
    return {
        "type": "message_action",
        "callback_id": SHORTCUT,
        "trigger_id": "13.19.abc",
        "response_url": "https://hooks.slack.com/app/1/2/3",
        "team": {"id": "T0ACME001"},
        "user": {"id": "U0ALICE01", "team_id": "T0ACME001"},
        "channel": {"id": "C0ITOPS01"},
        "message": {
            "user": "U0BOB0001",
            "ts": "17.0001",
            "text": "do <@U0CAROL01|carol>'s backups run &amp; when?",
        },
        **changed,
    }


def test_the_message_shortcut_asks_its_text_as_the_clicker() -> None:
    """The answer is private; a message without text asks for help. Outsiders are refused."""
    message = read_shortcut(shortcut(), API)
    assert message
    assert (message.key.conversation, message.text) == ("C0ITOPS01", "do @carol's backups run & when?")
    assert message.address["asked"]["user"] == "U0ALICE01"
    wordless = read_shortcut(shortcut(message={"ts": "17.0001"}), API)
    assert wordless
    assert wordless.text == "help"
    for changed in (
        {"user": {"id": "U0ALICE01", "team_id": "T0OTHER01"}},
        {"response_url": "https://evil.example/"},
        {"trigger_id": ""},
        {"channel": None},
    ):
        assert read_shortcut(shortcut(**changed), API) is None


@for_each(
    ("url", "is_slacks"),
    [
        ("https://hooks.slack.com/commands/1", True),
        ("https://slack.com/x", True),
        ("http://hooks.slack.com/commands/1", False),
        ("https://slack.com.evil.example/x", False),
        ("https://evilslack.com/x", False),
        ("https://user@evil.example/slack.com", False),
        ("https://\N{ACCOUNT OF}.slack.com/x", False),
        ("", False),
    ],
)
def test_replies_go_to_slack_only(url: str, is_slacks: bool) -> None:
    """A response_url on another host is never posted to."""
    assert (read_command(form(response_url=url), API) is not None) is is_slacks
    assert (read_share({"actions": [{"value": "k"}], "response_url": url}, API) is not None) is is_slacks


@pytest.mark.parametrize("field", ["team_id", "channel_id", "user_id", "trigger_id"])
def test_a_command_without_an_origin_asks_nothing(field: str) -> None:
    """Missing fields are not guessed."""
    assert read_command(form(**{field: ""}), API) is None


def test_only_the_asker_may_share_and_only_where_it_was_asked() -> None:
    """A click by another person or in another place shows nothing; a public question cannot be shared."""
    message = read_command(form(), API)
    assert message
    address = SlackAddress.from_json(message.address)
    click = {"user": {"id": "U0ALICE01"}, "channel": {"id": "C0ITOPS01"}}
    assert may_share(click, address)
    assert not may_share(click | {"user": {"id": "U0BOB0001"}}, address)
    assert not may_share(click | {"channel": {"id": "C0HRTEAM1"}}, address)
    assert not may_share({}, address)
    assert not may_share(click, replace(address, response_url=""))


def test_the_asker_sees_the_question_at_once() -> None:
    """Slack does not show the text of a command; markup in it is escaped."""
    message = read_command(form(text="who is <!channel>?"), API)
    assert message
    said = acknowledgement(SlackAddress.from_json(message.address), Language.GERMAN)
    assert said == "<@U0ALICE01>: who is ?\nIch suche …"


@dataclass
class Hooks:
    """Receives the replies and answers with a chosen status."""

    url: str = ""
    status: int = 200
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Record a reply."""
        self.sent.append(await request.json())
        if self.status == 0 and request.transport:
            request.transport.close()
        return web.Response(status=self.status or 200, text="ok", headers={"Retry-After": "7"})


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    """Yield a fake endpoint for response URLs."""
    hooks = Hooks()
    app = web.Application()
    app.router.add_post("/response", hooks.handle)
    async with TestServer(app) as server:
        hooks.url = str(server.make_url("/response"))
        yield hooks


def address_at(url: str) -> SlackAddress:
    """Return the address of a private question."""
    asked = ButtonQuestion("U1", "when?")
    return SlackAddress("C1", "T1:C1:13", asked=asked, response_url=url, is_acknowledged=True)


async def test_a_private_answer_is_ephemeral_and_has_a_share_button(hooks: Hooks) -> None:
    """The message fits Slack's limits for any answer; failures have no share button."""
    long = Answer(AnswerState.GROUNDED, "Daily & nightly. " * 2000, ANSWER.citations)
    await post_private_answer(address_at(hooks.url), long, 5)
    (sent,) = hooks.sent
    assert sent["response_type"] == "ephemeral"
    *_, share = sent["blocks"]
    assert [(one["action_id"], one["value"]) for one in share["elements"]] == [(SHARE, "T1:C1:13")]
    kinds = [block["type"] for block in sent["blocks"]]
    assert kinds[-3:] == ["section", "actions", "actions"]
    assert (
        len(json.dumps(sent["blocks"], ensure_ascii=False)) <= MAX_MESSAGE_CHARS + 500
    )  # the sections' other fields
    await post_private_answer(address_at(hooks.url), Answer(AnswerState.FAILED, "Something failed."), 5)
    assert SHARE not in json.dumps(hooks.sent[1])


async def test_a_shared_answer_names_asker_and_question(hooks: Hooks) -> None:
    """Two replies: one in the channel, without the button, and one that deletes the ephemeral message."""
    await share_to_channel(hooks.url, StoredAnswer(address_at("https://gone.example").to_json(), ANSWER), 5)
    shown, gone = hooks.sent
    assert shown["response_type"] == "in_channel"
    assert shown["text"].startswith("<@U1>: when?\n")
    assert [block["type"] for block in shown["blocks"]][-2:] == ["section", "actions"]
    assert SHARE not in json.dumps(shown)
    assert gone == {"delete_original": True}


@pytest.mark.parametrize(
    ("status", "error", "wait"),
    [
        (404, DeliveryError, 7),
        (429, DeliveryError, 7),
        (500, DeliveryUnclear, None),
        (0, DeliveryUnclear, None),
    ],
)
async def test_a_reply_that_slack_refuses_raises_a_matching_error(
    hooks: Hooks, status: int, error: type[DeliveryError], wait: float | None
) -> None:
    """Covers refusals, rate limits, server errors and broken connections."""
    hooks.status = status
    with pytest.raises(DeliveryError) as raised:
        await post_private_answer(address_at(hooks.url), ANSWER, 5)
    assert type(raised.value) is error
    assert raised.value.retry_after == wait


async def test_a_signed_shortcut_is_answered_at_its_response_url(
    street: Any, hooks: Hooks, settings_for: Any
) -> None:
    """The question is stored before it is acknowledged; then "searching" and the answer are posted."""
    async with aiohttp.ClientSession() as session:
        signed = Signed(session, street.url.removesuffix("/slack/events"), "signing-secret-of-the-test")
        assert await signed.click(shortcut(response_url=hooks.url)) == 200
    (message,) = street.inbox.kept.values()
    messenger = SlackMessenger(web_client("xoxb-test", settings_for().slack_api_url), settings_for())
    placed = await messenger.post_placeholder(message.address, Language.ENGLISH)
    await messenger.show_partial(message.address, placed, "Daily")
    await messenger.deliver(message.address, placed, ANSWER)
    searching, answer = hooks.sent
    assert searching["text"].endswith("Searching…")
    assert {searching["response_type"], answer["response_type"]} == {"ephemeral"}
    assert "Daily" in json.dumps(answer)


async def test_a_signed_command_is_stored_before_it_is_acknowledged(street: Any) -> None:
    """The acknowledgement is ephemeral; what is unsigned or cannot be stored is refused."""
    async with aiohttp.ClientSession() as session:
        signed = Signed(session, street.url.removesuffix("/slack/events"), "signing-secret-of-the-test")
        home = form(response_url="http://127.0.0.1:9/commands/1")
        status, body = await signed.command(**home)
        assert status == 200
        assert json.loads(body)["response_type"] == "ephemeral"
        (kept,) = street.inbox.kept.values()
        assert kept.text == "when do backups run?"
        assert await signed.command(**form()) == (200, "")
        street.inbox.failure = RuntimeError("no database")
        assert (await signed.command(**home | {"trigger_id": "2"}))[0] == 503
        forged = Signed(session, street.url.removesuffix("/slack/events"), "another-secret")
        assert (await forged.command(**home | {"trigger_id": "3"}))[0] == 401
    assert len(street.inbox.kept) == 1
