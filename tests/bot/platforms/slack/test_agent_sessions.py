"""Agent sessions of direct chats and streams: titled once, closed with their answer, and optional."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.memory_inbox import MemoryInbox, take_any
from fakes.slack_api import slack_api
from fakes.slack_events import envelope
from harness.clocks import advance_clocks

from bot.core.models import Answer, AnswerState, Language
from bot.platforms.slack.adapter import SlackAdapter
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.answer_streams import AnswerStreams
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.surfaces.agent_sessions import MAX_OPENED, NAMELESS, AgentSessions
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.chat_models import UPLOAD_KEY, WithdrawnItem
from storage.errors import DatabaseUnavailable

DIRECT = {"channel": "D1", "ts": "17.1", "thread": None, "key": "T1:D1:17.1", "user": "U1"}
IN_CHANNEL = DIRECT | {"channel": "C1", "thread": "17.1", "key": "T1:C1:17.1", "team": "T1", "bot": "UBOT"}
ANSWER = Answer(AnswerState.CHAT, "Hello.")
ASKED = "When do backups\nrun?"


@dataclass
class Slack:
    """Posts, streams and keeps sessions as Slack documents it; sessions may be refused or hang."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    # Titles and statuses by thread.
    titles: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    streaming: set[str] = field(default_factory=set)
    refusal: str = ""
    hangs: bool = False
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one API call."""
        method = request.match_info["method"]
        body = await request.json() if request.content_type == "application/json" else {}
        body |= dict(request.query) | dict(await request.post())
        self.calls.append((method, body))
        if method.startswith("agents.") or (self.refusal and method == "chat.startStream"):
            await asyncio.sleep(60 if self.hangs else 0)
            if error := self.refusal or self._session(method, body):
                return web.json_response({"ok": False, "error": error})
        elif error := self._stream(method, body):
            return web.json_response({"ok": False, "error": error})
        return web.json_response({"ok": True, "channel": body.get("channel"), "ts": "18.0"})

    def _session(self, method: str, body: dict[str, Any]) -> str:
        thread = body["thread_ts"]
        if method == "agents.sessions.rename":
            if thread not in self.statuses:
                return "session_not_found"
            self.titles[thread] = body["title"]
        else:
            if thread not in self.statuses and "title" in body:
                self.titles[thread] = body["title"]
            self.statuses[thread] = body["status"]
        return ""

    def _stream(self, method: str, body: dict[str, Any]) -> str:
        if method == "chat.startStream":
            self.streaming.add("18.0")
            self.statuses.setdefault(body["thread_ts"], "processing")
        if method == "chat.stopStream":
            if body["ts"] not in self.streaming:
                return "message_not_in_streaming_state"
            self.streaming.discard(body["ts"])
            self.statuses = dict.fromkeys(self.statuses, "active")
        return ""

    def methods(self) -> list[str]:
        """Return the names of the called methods, in order."""
        return [method for method, _ in self.calls]


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    """Yield a fake Slack on loopback."""
    slack = Slack()
    async with slack_api(slack.handle) as slack.url:
        yield slack


def messenger(slack: Slack, *, is_model_writing: bool = False) -> SlackMessenger:
    """Return the messenger of one process."""
    return SlackMessenger(
        web_client("xoxb-test", slack.url),
        BotSettings(openai_base_url="http://m" if is_model_writing else None),
    )


async def answer(slack: Slack, address: dict[str, Any], asked: str = ASKED, **given: Any) -> dict[str, Any]:
    """Post a placeholder, deliver the answer over it and return the placeholder."""
    one = messenger(slack, **given)
    placed = await one.post_placeholder(address, Language.GERMAN, asked=asked)
    await one.deliver(address, placed, ANSWER)
    return placed


async def test_a_direct_chat_session_is_titled_and_then_closed(
    slack: Slack,
) -> None:
    """The placeholder is posted before the session begins."""
    await answer(slack, DIRECT)
    begin, end = "agents.sessions.setStatus", "agents.sessions.setStatus"
    assert slack.methods() == ["chat.postMessage", begin, "chat.update", end]
    assert slack.calls[1][1]["initiator_user_id"] == "U1"
    assert (slack.titles, slack.statuses) == ({"17.1": "When do backups run?"}, {"17.1": "active"})


async def test_a_thread_keeps_its_first_or_its_edited_title(slack: Slack) -> None:
    """Later questions in the thread and a title that a person edited do not change it."""
    for ts, asked in (("19.1", ASKED), ("19.2", "And at night?")):
        await answer(slack, DIRECT | {"ts": ts, "thread": "17.1"}, asked)
    assert slack.titles == {"17.1": "When do backups run?"}
    slack.titles["17.1"] = "Backups"
    await answer(slack, DIRECT | {"ts": "19.3", "thread": "17.1"}, "Why?")
    assert slack.titles == {"17.1": "Backups"}


async def test_a_stream_is_titled_after_its_threads_first_question(slack: Slack) -> None:
    """The title is set once; Slack opens and closes the session of a stream itself."""
    await answer(slack, IN_CHANNEL, is_model_writing=True)
    assert slack.methods() == [
        "chat.startStream",
        "agents.sessions.rename",
        "chat.stopStream",
        "chat.update",
    ]
    assert slack.titles == {"17.1": "When do backups run?"}


async def test_a_stream_that_slack_ended_leaves_its_session_active(slack: Slack) -> None:
    """After a person stopped the stream, its session is set to active."""
    one = messenger(slack, is_model_writing=True)
    placed = await one.post_placeholder(IN_CHANNEL, Language.ENGLISH, asked=ASKED)
    slack.streaming.clear()
    await one.deliver(IN_CHANNEL, placed, ANSWER)
    assert slack.statuses == {"17.1": "active"}


async def test_a_session_is_closed_by_the_process_that_takes_over(slack: Slack) -> None:
    """The outbox records that a session began; another process that delivers the answer closes it."""
    placed = await messenger(slack).post_placeholder(DIRECT, Language.ENGLISH, asked=ASKED)
    assert slack.statuses == {"17.1": "processing"}
    await messenger(slack).deliver(DIRECT, placed, ANSWER)
    assert slack.statuses == {"17.1": "active"}


@pytest.mark.parametrize(
    "address",
    [
        IN_CHANNEL,
        DIRECT | {"asked": {"user": "U1", "text": "When?", "channel": "C1"}},
        DIRECT | {UPLOAD_KEY: {"id": "F1"}},
    ],
    ids=["a channel", "asked in the App Home", "a file"],
)
async def test_sessions_begin_only_for_typed_direct_messages(slack: Slack, address: dict[str, Any]) -> None:
    """Covers channels, threads and queued questions."""
    await answer(slack, address)
    queued = await messenger(slack).post_placeholder(
        DIRECT, Language.ENGLISH, queued="Others first.", asked=ASKED
    )
    await messenger(slack).deliver(DIRECT, queued, ANSWER)
    assert slack.statuses == {}


@pytest.mark.parametrize(("refusal", "hangs"), [("feature_disabled", False), ("", True)], ids=str)
async def test_answers_work_without_sessions_which_are_not_retried(
    slack: Slack, refusal: str, hangs: bool
) -> None:
    """The second question tries no session; one that may have begun is remembered, to be closed."""
    slack.refusal, slack.hangs = refusal, hangs
    sessions = AgentSessions(call_timeout=0.1, clear_timeout=0.1)
    one = SlackMessenger(web_client("xoxb-test", slack.url), BotSettings(), sessions=sessions)
    placed = [await one.post_placeholder(DIRECT, Language.ENGLISH, asked=ASKED) for _ in range(2)]
    for message in placed:
        await one.deliver(DIRECT, message, ANSWER)
    # Within 0.1 s a slow machine may not even connect: what is remembered counts, not what Slack saw.
    assert [bool(message.get("in_session")) for message in placed] == [hangs, False]
    assert hangs or slack.methods().count("agents.sessions.setStatus") == 1
    assert slack.methods().count("chat.update") == 2


async def test_a_refusal_by_one_workspace_does_not_affect_another(slack: Slack) -> None:
    """Covers sessions and streams; the workspace that refused is not asked again for a while."""
    sessions, streams = AgentSessions(), AnswerStreams(is_wanted=True)
    client = web_client("xoxb-test", slack.url)
    direct, in_channel = map(SlackAddress.from_json, (DIRECT, IN_CHANNEL))
    slack.refusal = "feature_disabled"
    assert not await sessions.open(client, direct, ASKED)
    assert await streams.begin(client, in_channel, "Searching") is None
    slack.refusal = ""
    assert not await sessions.open(client, direct, ASKED)
    assert await sessions.open(client, replace(direct, key="T2:D1:17.1"), ASKED)
    assert await streams.begin(client, in_channel, "Searching") is None
    assert await streams.begin(client, replace(in_channel, key="T2:C1:17.1"), "Searching")


async def test_no_more_sessions_are_opened_than_can_be_closed(slack: Slack) -> None:
    """Slack limits calls per minute, and a session that is never closed shows "working" for an hour."""
    sessions = AgentSessions()
    for _ in range(MAX_OPENED + 5):
        await sessions.open(web_client("xoxb-test", slack.url), SlackAddress.from_json(DIRECT), ASKED)
    assert len(slack.calls) == MAX_OPENED
    with advance_clocks(timedelta(minutes=2)):
        await sessions.open(web_client("xoxb-test", slack.url), SlackAddress.from_json(DIRECT), ASKED)
    assert len(slack.calls) == MAX_OPENED + 1


async def test_a_deleted_questions_words_leave_the_title(slack: Slack) -> None:
    """Shows it also if another process began the session; its status is set to active."""
    placed = await messenger(slack).post_placeholder(DIRECT, Language.ENGLISH, asked=ASKED)
    await messenger(slack).delete(WithdrawnItem(DIRECT, placed, is_posting=False), take_any)
    assert (slack.titles, slack.statuses) == ({"17.1": NAMELESS}, {"17.1": "active"})


async def test_the_stop_button_stops_a_question_or_closes_the_session(
    slack: Slack,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], MemoryInbox],
    door_for: Callable[..., SlackAdapter],
    sign: Callable[[bytes], dict[str, str]],
) -> None:
    """The click is stored before it is acknowledged; with no question in progress the session is closed."""
    inbox = new_inbox()
    door = door_for(settings_for(slack.url, slack_signing_secret="signing-secret-of-the-test"), inbox)
    app = web.Application()
    door.add_routes(app)
    asked = {"type": "app_mention", "user": "U0ALICE01", "channel": "C0ITOPS01", "text": "When?"}

    async def send(name: str, **event: Any) -> int:
        body = json.dumps(envelope(name, **event)).encode()
        headers = {one.replace("_", "-"): value for one, value in sign(body).items()}
        headers["Content-Type"] = "application/json"
        async with session.post(server.make_url("/slack/events"), data=body, headers=headers) as response:
            return response.status

    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        stop = {"type": "agent_session_stopped", "channel": "C0ITOPS01", "user": "U0ALICE01"}
        stop |= {"thread_ts": "17.1", "event_ts": "18.5"}
        assert await send("Ev1", **stop) == 200
        assert slack.statuses == {"17.1": "active"}
        assert await send("Ev2", **asked, ts="17.1") == 200
        assert await send("Ev3", **stop) == 200
        inbox.failure = DatabaseUnavailable("away")
        assert await send("Ev4", **stop) == 503
    assert inbox.stopped == ["T0ACME001:C0ITOPS01:17.1"]
    assert [method for method in slack.methods() if method.startswith("agents.")] == [
        "agents.sessions.setStatus"
    ]
    await door.stop()
