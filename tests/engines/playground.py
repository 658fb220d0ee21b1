"""Microsoft's Agents Playground: a local Teams emulator with a browser UI.

Pre-release Microsoft terms: for evaluation and feedback, on the developer's side only. It is fetched from
npm, never vendored; its telemetry is switched off. It checks no tokens, cards or manifests: Microsoft's card
parser and manifest schemas are fetched, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness.waiting import until
from playwright.async_api import Browser, Page, ViewportSize

from engines.support.npm import NpmPackage
from engines.support.ports import free_port
from engines.support.teams_schemas import PACKAGES

NAME = "playground"
REMEDY = ".venv/bin/python tests/fetch.py playground (needs Node.js 20 and npm)"
BINDS_EVERYWHERE = True

PACKAGE = NpmPackage(
    "@microsoft/m365agentsplayground",
    "0.2.28",
    "EevhYW8xtEATwNg5eiFqTgZT0P5gjfCsLBwBWESSrB6+0lr9Yi9R27HJwjNGUlT3JQlxoWMgnvEQunUuyI/+2Q==",
)
PROGRAM = PACKAGE.folder / "cli.js"

TENANT = "3f0c9a52-1111-4c11-9a11-000000000001"
BOT_ID, BOT_NAME = "28:11111111-1111-1111-1111-111111111111", "Footnote"
PERSONAL = "a:1personal-chat"
GROUP = "19:group0001@thread.v2"
GENERAL = "19:general0001@thread.tacv2"
OPERATIONS = "19:operations01@thread.tacv2"


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    if not PROGRAM.exists():
        return "the Agents Playground was not fetched"
    return None if all(one.folder.exists() for one in PACKAGES) else "Microsoft's schemas were not fetched"


def fetch() -> None:
    """Download it from npm, with the schemas that it does not check."""
    for package in (PACKAGE, *PACKAGES):
        package.fetch()


@dataclass(frozen=True, slots=True)
class Playground:
    """A running Playground, driven as its user."""

    url: str
    session: aiohttp.ClientSession
    recording: Path

    async def say(self, conversation: str, text: str, mention: bool = False) -> str:
        """Send a user's message; return the conversation id that the bot sees."""
        body: dict[str, Any] = {"type": "message", "text": text, "textFormat": "plain"}
        body["from"] = {"id": "user-id-0"}
        if mention:
            at = f"<at>{BOT_NAME}</at>"
            body["text"] = f"{at} {text}"
            body["mentions"] = [{"mentioned": {"id": BOT_ID, "name": BOT_NAME}, "text": at}]
        path = f"{self.url}/_conversation/v1/conversations/{conversation}/messages"
        async with self.session.post(path, json=body) as response:
            assert response.status < 300, await response.text()
            reply = await response.json()
        return str(reply.get("postConversationId") or conversation)

    async def open(self, browser: Browser, *, width: int = 1280, height: int = 900, scale: float = 1) -> Page:
        """Open its page, ready for input; requests to other hosts are aborted.

        It installs the app once it has its settings and then renders again, so that earlier input is lost.
        """
        window: ViewportSize = {"width": width, "height": height}
        page = await browser.new_page(viewport=window, device_scale_factor=scale)
        page.set_default_timeout(120_000)  # milliseconds: it renders slowly on a busy machine
        await page.route(lambda url: "127.0.0.1" not in url, lambda route: route.abort())
        await page.goto(self.url)
        await page.get_by_text("installationUpdate").first.wait_for()
        return page

    async def write(self, page: Page, text: str) -> None:
        """Type a message into the open chat and send it."""
        box = page.locator('[contenteditable="true"]').first
        await box.fill(text)
        await box.press("Enter")

    async def install(self, conversation: str) -> None:
        """Install the app in a conversation; may be repeated."""
        path = f"{self.url}/_debug/conversation/{conversation}/installation"
        async with self.session.post(path) as response:
            assert response.status < 300, await response.text()

    async def send(self, activity: dict[str, Any]) -> None:
        """Deliver an activity to the bot unchanged."""
        async with self.session.post(f"{self.url}/_internal/v1/customActivities", json=activity) as response:
            assert response.status < 300, await response.text()

    def calls(self) -> list[dict[str, Any]]:
        """Return the messages that the bot sent to the connector, in order, with the replies."""
        text = self.recording.read_text() if self.recording.exists() else ""
        *written, last = text.split("\n---\n")
        events = [json.loads(part) for part in written if part.strip(" \n-")]
        with suppress(json.JSONDecodeError):  # empty, or just being written
            events.append(json.loads(last))
        sent = [event for event in events if event["direction"].startswith("User Application ->")]
        return [event for event in sent if "body" in event["request"]]

    async def said(self, words: str) -> list[str] | None:
        """Return the bot's messages with these words as JSON, or None."""
        said = [json.dumps(call["request"]["body"], ensure_ascii=False) for call in self.calls()]
        return [one for one in said if words in one] or None

    async def answered(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the bot's calls once it has posted this many answers, each with citations."""

        async def posted() -> list[dict[str, Any]] | None:
            calls = self.calls()
            found = sum('"citation"' in json.dumps(call["request"]["body"]) for call in calls)
            return calls if found >= count else None

        return await until(posted)


def config() -> dict[str, Any]:
    """Return a tenant with a personal chat, a group chat and a team of two channels; at least five users."""
    people = [_person(number) for number in range(6)]
    channels = [{"id": OPERATIONS, "name": "Operations"}]
    return {
        "version": "0.1.1",
        "tenantId": TENANT,
        "bot": {"id": BOT_ID, "name": BOT_NAME},
        "currentUser": people[0],
        "users": people[1:],
        "personalChat": {"id": PERSONAL},
        "groupChat": {"id": GROUP, "name": "Group Chat"},
        "team": {
            "id": GENERAL,
            "name": "IT",
            "aadGroupId": "11111111-2222-3333-4444-555555555555",
            "channels": channels,
        },
    }


def _person(number: int) -> dict[str, str]:
    mail = f"person{number}@example.com"
    names = {"name": f"Person {number}", "givenName": "Person", "surname": str(number)}
    ids = {"id": f"user-id-{number}", "aadObjectId": f"00000000-0000-0000-0000-00000000002{number}"}
    return names | ids | {"userPrincipleName": mail, "email": mail}


StartPlayground = Callable[[str], Awaitable[Playground]]


@pytest.fixture
async def start_playground(tmp_path: Path) -> AsyncIterator[StartPlayground]:
    """``await start_playground(bot_endpoint)`` starts the Playground."""
    running: list[asyncio.subprocess.Process] = []
    async with aiohttp.ClientSession() as session:

        async def start(endpoint: str) -> Playground:
            (tmp_path / ".m365agentsplayground.yml").write_text(json.dumps(config()))
            port, recording = free_port(), tmp_path / "recording.log"
            running.append(await _launch(tmp_path, endpoint, port, recording))
            playground = Playground(f"http://127.0.0.1:{port}", session, recording)
            await until(lambda: _is_ready(playground))
            return playground

        yield start
        for process in running:
            process.terminate()
            await process.wait()


async def _launch(folder: Path, endpoint: str, port: int, recording: Path) -> asyncio.subprocess.Process:
    options = ["-e", endpoint, "-c", "msteams", "-p", str(port)]
    switches = ["--disable-telemetry", "--enable-events-recording"]
    environment = os.environ | {
        "TEAMSAPPTESTER_BROWSER": "none",
        "M365_AGENTS_PLAYGROUND_RECORDING_FILE": str(recording),
    }
    with (folder / "playground.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            "node", PROGRAM, "start", *options, *switches, cwd=folder, env=environment, stdout=log, stderr=log
        )


async def _is_ready(playground: Playground) -> bool:
    with suppress(aiohttp.ClientError):
        async with playground.session.get(f"{playground.url}/_debug/ping") as response:
            return "pong" in await response.text()
    return False
