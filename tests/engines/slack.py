"""local-slack: a fake Slack with one workspace, Web API, Events API, Socket Mode and a browser UI.

MIT, https://github.com/parvalabs/local-slack. It accepts any token, validates no blocks and drops message
metadata; what depends on those is tested against fakes of our own. Every test that uses it ends with a
validation of all blocks by ``slack_judges``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.waiting import until

from engines.support import slack_judges
from engines.support.npm import NpmPackage
from engines.support.ports import free_port

NAME = "slack"
REMEDY = ".venv/bin/python tests/fetch.py slack (needs Node.js 20, npm and Linux on x64)"
BINDS_EVERYWHERE = True

PACKAGE = NpmPackage(
    "local-slack-linux-x64",
    "0.1.8",
    "2BCTKxKajjZNWCSCj66Jq5VDScUDNpGZ1lA3281I8RvpDE4/ULCwC26TlcW6/4sPbSTs02Q3KjTiltJp3ZBEvg==",
)
BINARY = PACKAGE.folder / "bin" / "local-slack"

TEAM, BOT, ALICE, CAROL = "T0ACME001", "U0FOOT001", "U0ALICE01", "U0CAROL01"
IT, HR = "C0ITOPS01", "C0HRTEAM1"
BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-test", "xapp-test", "signing-secret-of-the-test"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    if not BINARY.exists():
        return "local-slack was not fetched"
    return None if slack_judges.is_fetched() else "the schemas of Slack's types were not made"


def fetch() -> None:
    """Download it from npm, and generate the schemas that it does not apply."""
    PACKAGE.fetch()
    BINARY.chmod(0o755)
    slack_judges.fetch()


@dataclass(frozen=True, slots=True)
class SlackDouble:
    """A running local-slack, driven as its users."""

    url: str
    session: aiohttp.ClientSession

    @property
    def api_url(self) -> str:
        """Value of ``SLACK_API_URL``."""
        return f"{self.url}/api/"

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        """Make a call that must succeed."""
        async with self.session.post(f"{self.url}{path}", json=body) as response:
            reply: dict[str, Any] = await response.json()
        assert reply.pop("ok"), reply
        return reply

    async def say(self, channel: str, text: str, thread: str | None = None) -> str:
        """Post a message as Alice; return its ts."""
        body = {"channel": channel, "user": ALICE, "text": text}
        if thread:
            body["thread_ts"] = thread
        reply = await self.post("/_control/message", **body)
        return str(reply["message"]["ts"])

    async def upload(self, channel: str, name: str, data: bytes, text: str = "", user: str = ALICE) -> None:
        """Upload a file with a message."""
        form = aiohttp.FormData({"channel": channel, "user": user, "text": text}, quote_fields=False)
        form.add_field("file", data, filename=name, content_type="application/pdf")
        async with self.session.post(f"{self.url}/_control/upload", data=form) as response:
            reply = await response.json()
        assert reply["ok"], reply

    async def open_dm(self) -> str:
        """Return the direct channel between Alice and the bot."""
        reply = await self.post("/api/conversations.open", users=ALICE)
        return str(reply["channel"]["id"])

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        """Return all messages of a channel, oldest first."""
        async with self.session.get(f"{self.url}/_control/messages/{channel}") as response:
            reply = await response.json()
        found: list[dict[str, Any]] = reply["messages"]
        return found

    async def posted(self, channel: str, words: str) -> list[dict[str, Any]] | None:
        """Return the bot's messages in a channel with these words, or None."""
        own = [message for message in await self.messages(channel) if message.get("user") == BOT]
        return [message for message in own if words in json.dumps(message, ensure_ascii=False)] or None

    async def log(self) -> list[dict[str, Any]]:
        """Return the calls between Slack and the bot, oldest first."""
        async with self.session.get(f"{self.url}/_control/log") as response:
            entries: list[dict[str, Any]] = (await response.json())["log"]
        return entries

    async def replies(self, channel: str, count: int = 1) -> list[dict[str, Any]]:
        """Return the bot's messages once ``count`` of them are finished answers (those with blocks)."""

        async def answered() -> list[dict[str, Any]] | None:
            posted = [m for m in await self.messages(channel) if m.get("user") == BOT]
            return posted if sum(bool(m.get("blocks")) for m in posted) >= count else None

        return await until(answered)


def workspace(mode: str, request_url: str) -> dict[str, Any]:
    """Return a workspace of two channels with the bot in both, reached over ``mode``: events or socket."""
    app = {"appId": "A0FOOT001", "botUserId": BOT, "botName": "footnote", "botToken": BOT_TOKEN}
    secrets = {"appToken": APP_TOKEN, "signingSecret": SECRET, "mode": mode, "requestUrl": request_url}
    return {
        "workspace": {"name": "Acme", "domain": "acme", "teamId": TEAM},
        "app": app | secrets,
        "users": [
            {"id": ALICE, "name": "alice", "realName": "Alice"},
            {"id": CAROL, "name": "carol", "realName": "Carol"},
        ],
        "channels": [
            {"id": IT, "name": "it-ops", "members": [ALICE, CAROL, BOT]},
            {"id": HR, "name": "hr", "members": [ALICE, BOT]},
        ],
    }


def slack_settings(api_url: str, transport: str = "socket", **others: str) -> dict[str, str]:
    """Return the settings of a bot that receives messages over ``transport``; receipts are off."""
    way = {"SLACK_SIGNING_SECRET": SECRET} if transport == "events" else {"SLACK_APP_TOKEN": APP_TOKEN}
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_API_URL": api_url,
        "FOOTNOTE_RECEIPTS": "off",
        **way,
        **others,
    }


StartSlack = Callable[[str, str], Awaitable[SlackDouble]]


@pytest.fixture
async def start_slack(tmp_path: Path) -> AsyncIterator[StartSlack]:
    """``await start_slack("events" or "socket", request_url)`` starts local-slack.

    What it received is validated at the end.
    """
    running: list[asyncio.subprocess.Process] = []
    doubles: list[SlackDouble] = []
    # The fake closes idle connections, sometimes just as they are used again.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:

        async def start(mode: str, request_url: str) -> SlackDouble:
            config, port = tmp_path / "slack.json", free_port()
            config.write_text(json.dumps(workspace(mode, request_url)))
            options = ["--config", str(config), "--port", str(port), "--base-host", "127.0.0.1"]
            with (tmp_path / "slack.log").open("wb") as log:
                running.append(await asyncio.create_subprocess_exec(BINARY, *options, stdout=log, stderr=log))
            double = SlackDouble(f"http://127.0.0.1:{port}", session)
            await until(lambda: _is_ready(double))
            doubles.append(double)
            return double

        yield start
        faults = [fault for double in doubles for fault in await _faults(double)]
        for process in running:
            process.terminate()
            await process.wait()
    assert faults == []


async def _faults(double: SlackDouble) -> list[str]:
    """Return the validation errors of the bot's calls."""
    return [
        fault
        for entry in await double.log()
        if (entry["direction"], entry["kind"]) == ("from_bot", "web_api")
        for fault in slack_judges.faults_of(entry["summary"], entry.get("detail") or {})
    ]


async def _is_ready(double: SlackDouble) -> bool:
    with suppress(aiohttp.ClientError):
        async with double.session.get(f"{double.url}/_control/state"):
            return True
    return False
