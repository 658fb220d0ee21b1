"""local-slack: a Slack server of one workspace, with Web API, Events API, Socket Mode and a browser UI.

MIT, https://github.com/parvalabs/local-slack. It takes any token, checks no blocks and forgets
message metadata; what depends on those is tested against servers of our own. Blocks have judges instead,
which every test of a double is judged by when it ends.
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

TEAM, BOT, ALICE = "T0ACME001", "U0FOOT001", "U0ALICE01"
IT, HR = "C0ITOPS01", "C0HRTEAM1"
BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-test", "xapp-test", "signing-secret-of-the-test"


def missing() -> str | None:
    """True if it was fetched, and the schemas of what it does not check."""
    if not BINARY.exists():
        return "local-slack was not fetched"
    return None if slack_judges.is_fetched() else "the schemas of Slack's types were not made"


def fetch() -> None:
    """Get it from npm, and make the schemas that it does not apply."""
    PACKAGE.fetch()
    BINARY.chmod(0o755)
    slack_judges.fetch()


@dataclass(frozen=True, slots=True)
class SlackDouble:
    """A running local-slack, driven as its people would."""

    url: str
    session: aiohttp.ClientSession

    @property
    def api_url(self) -> str:
        """What ``SLACK_API_URL`` is set to."""
        return f"{self.url}/api/"

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        """One call, which must succeed."""
        async with self.session.post(f"{self.url}{path}", json=body) as response:
            reply: dict[str, Any] = await response.json()
        assert reply.pop("ok"), reply
        return reply

    async def say(self, channel: str, text: str, thread: str | None = None) -> str:
        """Alice writes; returns the message's ts."""
        body = {"channel": channel, "user": ALICE, "text": text}
        if thread:
            body["thread_ts"] = thread
        reply = await self.post("/_control/message", **body)
        return str(reply["message"]["ts"])

    async def upload(self, channel: str, name: str, data: bytes, text: str = "", user: str = ALICE) -> None:
        """Somebody posts a file, with words beside it."""
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
        """Return everything that was posted in a channel, oldest first."""
        async with self.session.get(f"{self.url}/_control/messages/{channel}") as response:
            reply = await response.json()
        found: list[dict[str, Any]] = reply["messages"]
        return found

    async def posted(self, channel: str, words: str) -> list[dict[str, Any]] | None:
        """Return the bot's messages in a channel that hold these words; None: there is none."""
        own = [message for message in await self.messages(channel) if message.get("user") == BOT]
        return [message for message in own if words in json.dumps(message, ensure_ascii=False)] or None

    async def log(self) -> list[dict[str, Any]]:
        """What went between Slack and the bot, oldest first."""
        async with self.session.get(f"{self.url}/_control/log") as response:
            entries: list[dict[str, Any]] = (await response.json())["log"]
        return entries

    async def replies(self, channel: str, count: int = 1) -> list[dict[str, Any]]:
        """What the bot posted, once there are ``count`` finished answers (those with blocks)."""

        async def answered() -> list[dict[str, Any]] | None:
            posted = [m for m in await self.messages(channel) if m.get("user") == BOT]
            return posted if sum(bool(m.get("blocks")) for m in posted) >= count else None

        return await until(answered)


def workspace(mode: str, request_url: str) -> dict[str, Any]:
    """Two channels with the bot in both; the bot is reached over ``mode``: events or socket."""
    app = {"appId": "A0FOOT001", "botUserId": BOT, "botName": "footnote", "botToken": BOT_TOKEN}
    secrets = {"appToken": APP_TOKEN, "signingSecret": SECRET, "mode": mode, "requestUrl": request_url}
    return {
        "workspace": {"name": "Acme", "domain": "acme", "teamId": TEAM},
        "app": app | secrets,
        "users": [{"id": ALICE, "name": "alice", "realName": "Alice"}],
        "channels": [
            {"id": IT, "name": "it-ops", "members": [ALICE, BOT]},
            {"id": HR, "name": "hr", "members": [ALICE, BOT]},
        ],
    }


def slack_settings(api_url: str, transport: str = "socket", **others: str) -> dict[str, str]:
    """What an admin sets, so that ``transport`` (events or socket) brings what people say; no receipts."""
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
    """Starts local-slack: ``await start_slack("events" or "socket", request_url)``.

    What it was given is judged at the end.
    """
    running: list[asyncio.subprocess.Process] = []
    doubles: list[SlackDouble] = []
    # The double closes a connection that was quiet for a while, sometimes just as it is used again.
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
    """What the judges have against what a bot said to it."""
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
