"""A channel whose id changes accepts both ids, is called by the new one, and stays one tenant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web
from fakes.slack_api import slack_api
from fakes.slack_events import BOT, TEAM, envelope

from bot.core.models import Answer, AnswerState
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.private_questions import SHORTCUT
from bot.platforms.slack.web_api import web_client
from bot.platforms.slack.workspace.memberships import Memberships
from bot.platforms.slack.workspace.moved_channels import ChannelIdMap, read_move
from bot.settings import BotSettings
from storage.errors import DatabaseUnavailable
from storage.models import Channel, ChannelKey, Platform, TenantName

OLD, NEW, OTHER = "G0BOARD01", "C0BOARD99", "C0OTHER01"
ALICE = "U0ALICE01"
MOVES = [(TenantName(f"sl_{TEAM}_{OLD}"), TenantName(f"sl_{TEAM}_{NEW}"))]


def moved(event_id: str = "Ev9", **changed: Any) -> dict[str, Any]:
    """Return a ``channel_id_changed`` event."""
    event = {"type": "channel_id_changed", "old_channel_id": OLD, "new_channel_id": NEW, "event_ts": "18.1"}
    return envelope(event_id, **(event | changed))


def mention(channel: str, ts: str) -> dict[str, Any]:
    """Return a mention by Alice."""
    said = {"user": ALICE, "text": f"<@{BOT}> when do backups run?", "ts": ts, "team": TEAM}
    return envelope(f"Ev{ts}", type="app_mention", channel=channel, **said)


async def test_after_a_move_both_ids_belong_to_the_same_channel(street: Any) -> None:
    """Covers late events with the old id and events with the new id; other channels are unaffected."""
    assert await street.send(mention(OLD, "17.1")) == 200
    assert [await street.send(moved()) for _ in range(2)] == [200, 200]
    assert street.inbox.moved[0] == MOVES[0]
    assert [await street.send(mention(*one)) for one in ((OLD, "18.2"), (NEW, "18.3"), (OTHER, "18.4"))] == [
        200
    ] * 3
    asked = [one.key.conversation for one in street.inbox.kept.values()]
    assert asked == [OLD, OLD, OLD, OTHER]
    assert street.inbox.kept[f"{TEAM}:{OLD}:18.3"].address["channel"] == OLD
    assert await street.send(mention(NEW, "17.1")) == 200
    assert len(street.inbox.kept) == 4


async def test_commands_and_shortcuts_follow_a_move(
    street: Any, sign: Callable[[bytes], dict[str, str]]
) -> None:
    """Commands and shortcuts name their channel in other fields than events do."""
    street.inbox.moved += MOVES
    command = {
        "command": "/footnote",
        "text": "when do backups run?",
        "team_id": TEAM,
        "channel_id": NEW,
        "user_id": ALICE,
        "trigger_id": "13.1",
        "response_url": "http://127.0.0.1:9/respond",
    }
    message = {"ts": "17.5", "text": "when do backups run?"}
    shortcut = {
        "type": "message_action",
        "callback_id": SHORTCUT,
        "team": {"id": TEAM},
        "user": {"id": ALICE},
        "channel": {"id": NEW},
        "message": message,
        "trigger_id": "13.2",
        "response_url": "http://127.0.0.1:9/respond",
    }
    for form in (command, {"payload": json.dumps(shortcut)}):
        body = urlencode(form).encode()
        sent = street.post(body, Content_Type="application/x-www-form-urlencoded", **sign(body))
        assert await sent == 200
    assert [one.key.conversation for one in street.inbox.kept.values()] == [OLD, OLD]


async def test_a_move_in_one_workspace_does_not_affect_another(street: Any) -> None:
    """A hostile workspace claims that our channel has moved: ours is unaffected."""
    street.inbox.moved += [(TenantName(f"sl_T0EVIL_{OTHER}"), TenantName(f"sl_T0EVIL_{OLD}"))]
    assert await street.send(mention(OLD, "17.1")) == 200
    (asked,) = street.inbox.kept.values()
    assert (asked.key.conversation, asked.address["channel"]) == (OLD, OLD)


def test_ids_of_an_installation_are_translated_for_it_alone() -> None:
    """Shows both directions; a client of the only installation translates all ids."""
    evil = (ChannelKey(Platform("slack"), "T0EVIL", OTHER), ChannelKey(Platform("slack"), "T0EVIL", OLD))

    async def moves() -> list[tuple[TenantName, TenantName]]:
        return [*MOVES, (evil[0].tenant, evil[1].tenant)]

    moved = ChannelIdMap(moves)
    asyncio.run(moved.refresh())
    assert [moved.to_current(OLD, one) for one in (TEAM, "T0EVIL", "T0NEW")] == [NEW, OLD, OLD]
    assert [moved.to_stored(OLD, one) for one in (TEAM, "T0EVIL", "T0NEW")] == [OLD, OTHER, OLD]
    assert [moved.to_stored(NEW, one) for one in (TEAM, "T0EVIL", None)] == [OLD, NEW, OLD]


async def test_moves_and_questions_that_cannot_be_stored_are_retried(
    street: Any,
) -> None:
    """While the database is down the channel of a question is unknown, so Slack must retry."""
    street.inbox.failure = DatabaseUnavailable("the database is away")
    assert await street.send(moved()) == 503
    assert street.inbox.moved == []
    street.inbox.failure, street.inbox.moves_failure = None, street.inbox.failure
    assert await street.send(mention(OLD, "17.1")) == 503
    assert street.inbox.arrivals == 0


@pytest.mark.parametrize(
    "changed",
    [{"old_channel_id": "not one"}, {"new_channel_id": None}, {"type": "channel_rename"}],
    ids=["no old id", "no new id", "another event"],
)
def test_an_event_without_two_channel_ids_is_no_move(changed: dict[str, Any]) -> None:
    """Shows that only valid Slack ids become folder names."""
    assert read_move(moved(**changed)) is None


def test_a_move_is_read_in_the_installation_of_its_envelope() -> None:
    """The workspace's, or the enterprise's for an org-wide install."""
    assert read_move(moved()) == tuple(ChannelKey(Platform("slack"), TEAM, one) for one in (OLD, NEW))
    wide = moved()
    wide["authorizations"][0] |= {"is_enterprise_install": True, "enterprise_id": "E1"}
    keys = read_move(wide)
    assert keys
    assert {one.installation for one in keys} == {"E1"}


@dataclass
class Slack:
    """Knows the channel by its new id only."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one API call."""
        body = await request.json() if request.content_type == "application/json" else {}
        body |= dict(request.query) | dict(await request.post())
        method = request.match_info["method"]
        self.calls.append((method, body))
        if body.get("channel", NEW) != NEW:
            return web.json_response({"ok": False, "error": "channel_not_found"})
        channels = [{"id": NEW, "name": "board"}]
        return web.json_response({"ok": True, "channel": NEW, "ts": "18.9", "channels": channels})


@pytest.fixture
async def slack() -> AsyncIterator[tuple[Slack, str]]:
    """Yield a fake Slack and its URL."""
    double = Slack()
    async with slack_api(double.handle) as url:
        yield double, url


async def test_pending_messages_are_sent_to_the_moved_channel(slack: tuple[Slack, str]) -> None:
    """Covers answers, receipts and channel mentions; members of the new id are members of our channel."""
    double, url = slack
    client = web_client("xoxb-test", url)

    async def moves() -> list[tuple[TenantName, TenantName]]:
        return MOVES

    client.channel_ids = ChannelIdMap(moves)
    messenger = SlackMessenger(client, BotSettings())
    address = {"channel": OLD, "ts": "17.1", "thread": "17.1", "key": f"{TEAM}:{OLD}:17.1"}
    asked = {"user": ALICE, "text": "When?", "channel": OLD}
    answer = Answer(AnswerState.CHAT, "Hello.")
    await messenger.deliver(address | {"asked": asked}, {"channel": OLD, "ts": "17.2"}, answer)
    ((_, sent),) = double.calls
    assert (sent["channel"], sent["ts"]) == (NEW, "17.2")
    assert f"<#{NEW}>" in sent["text"]
    assert OLD not in sent["text"]
    channel = Channel(1, MOVES[0][0], Platform("slack"), "board", 1)
    place = messenger.announcement_address(channel, None)
    assert (await client.chat_postMessage(channel=place["channel"], text="New."))["channel"] == OLD
    members = Memberships(client)
    assert await members.is_member(ChannelKey(Platform("slack"), TEAM, OLD), ALICE)


async def test_a_client_of_one_workspace_translates_no_ids_of_another(slack: tuple[Slack, str]) -> None:
    """A move claimed by one workspace neither redirects our answers nor renames our replies."""
    double, url = slack
    client = web_client("xoxb-test", url)

    async def moves() -> list[tuple[TenantName, TenantName]]:
        evil = [TenantName(f"sl_T0EVIL_{one}") for one in (OLD, NEW, OTHER)]
        return [(evil[0], evil[1]), (evil[1], evil[2])]

    client.channel_ids, client.installation = ChannelIdMap(moves), TEAM
    assert (await client.chat_postMessage(channel=NEW, text="New."))["channel"] == NEW
    ((_, sent),) = double.calls
    assert sent["channel"] == NEW


async def test_known_moves_are_used_while_the_database_is_down(slack: tuple[Slack, str]) -> None:
    """Shows that a finished answer is delivered with the last known list of moves."""
    double, url = slack
    client = web_client("xoxb-test", url)
    answers: list[Any] = [MOVES]

    async def moves() -> Any:
        if answers:
            return answers.pop()
        raise DatabaseUnavailable("the database is away")

    client.channel_ids = ChannelIdMap(moves)
    for _ in range(2):
        await client.chat_postMessage(channel=OLD, text="Hello.")
        client.channel_ids.invalidate()
    assert [sent["channel"] for _, sent in double.calls] == [NEW, NEW]
