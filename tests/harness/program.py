"""The whole program as users run it, on its own home, without fakes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from engines.support.ports import free_port

from bot.web.security import SCRIPT_HEADER
from harness.forks import Fork, run_command
from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.errors import UnknownChannel
from storage.sql.database import Database

FOOTNOTE = Path(sys.executable).with_name("footnote")
SAMPLES = Path(__file__).parents[2] / "bot" / "cli" / "setup" / "samples"
# Each worker and the page layout take seconds to start: tests that need them switch them on.
SLIM = {"FOOTNOTE_READ_WORKERS": "1", "FOOTNOTE_LAYOUT": "false"}
READY_SECONDS = 180
LIVE_SECONDS = 300


@dataclass
class Program:
    """The program on a home, with its settings in ``environment``; reading stops at ``rung``."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    rung: str = "full"

    @property
    def url(self) -> str:
        """URL of ``serve``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def has_greeted(self) -> bool:
        """True if ``serve`` has printed its URL and the last line of its startup message."""
        return "\nEngines " in self.log

    @property
    def console_url(self) -> str:
        """URL printed by ``serve`` that opens the console."""
        return re.findall(rf"^Ask {{8}}({self.url}/\S*)", self.log, re.MULTILINE)[-1]

    @property
    def console_headers(self) -> dict[str, str]:
        """Header of an API client of the console."""
        return {"Authorization": f"Bearer {self.console_url.rpartition('=')[2]}"}

    @property
    def log(self) -> str:
        """Output of ``serve``."""
        return (self.home / "serve.out").read_text() if (self.home / "serve.out").exists() else ""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_command(arguments, self.variables)

    def new_token(self, *opens: str) -> str:
        """Create a token of the API by the command, which prints it once."""
        made = self.run("tokens", "create", "test", *opens)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def ask(self, question: str, channel: str) -> dict[str, Any]:
        """Return an answer as JSON, as other programs get it."""
        asked = self.run("ask", question, "--channel", channel, "--json")
        assert asked.returncode == 0, asked.stderr
        answer: dict[str, Any] = json.loads(asked.stdout)
        return answer

    def documents(self, channel: str) -> list[dict[str, Any]]:
        """Return the documents of a channel."""
        listed = self.run("documents", "--channel", channel, "--json")
        assert listed.returncode == 0, listed.stderr
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def drop(self, channel: str, file: Path | bytes, name: str | None = None) -> Path:
        """Put a PDF into a channel's watched folder."""
        data = file if isinstance(file, bytes) else file.read_bytes()
        name = name or (file.name if isinstance(file, Path) else "document.pdf")
        place = self.home / "inbox" / channel / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return place

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Fork]:
        """Run ``serve`` and wait until it is ready; end it by Ctrl-C, which must succeed."""
        process = self.start()
        try:
            await self.until_ready(process)
            yield process
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(process.wait, 180) == 0, self.log
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def start(self) -> Fork:
        """Start ``serve``; its output goes to ``log``."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "serve.out").open("ab") as output:
            return Fork("footnote", ["serve", "--port", str(self.port)], self.variables, output)

    def start_on(self, terminal: int, *arguments: str) -> Fork:
        """Start a command on a terminal."""
        return Fork("footnote", arguments, self.variables, terminal=terminal)

    async def until_live(self, channel: str, files: int, rung: str = "quick") -> None:
        """Wait until this many files of the channel are live at the rung or better."""
        assert rung in {"quick", self.rung}, "reading stops before that"
        wanted = {"quick": ("quick", "full"), "full": ("full",)}[rung]
        deadline = time.monotonic() + LIVE_SECONDS
        database = await Database.open(f"sqlite:///{self.home / 'footnote.db'}")
        async with aclosing(database):
            while time.monotonic() < deadline:
                if await _count_live(database, channel, wanted) >= files:
                    return
                await asyncio.sleep(0.1)
        raise AssertionError(f"{files} files of {channel} never reached {rung}: {self.log}")

    async def until_ready(self, process: Fork) -> None:
        """Wait until a started ``serve`` has printed its URL and is ready."""
        deadline = time.monotonic() + READY_SECONDS
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while time.monotonic() < deadline and process.poll() is None:
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(f"{self.url}/readyz") as response:
                        if response.status == 200 and self.has_greeted:
                            return
                await asyncio.sleep(0.1)
        raise AssertionError(f"serve did not become ready: {self.log}")

    async def ask_console(self, channel: str, question: str) -> str:
        """Ask a question in a local channel through the console's API; return the response."""
        marks = {"Origin": self.url, SCRIPT_HEADER: "1", **self.console_headers}
        async with aiohttp.ClientSession(headers=marks) as session:
            async with session.get(f"{self.url}/console/channels") as listed:
                channels: list[dict[str, Any]] = (await listed.json())["channels"]
            chosen = next(found for found in channels if found["name"] == channel)
            body = {"channel": chosen["id"], "question": question}
            async with session.post(f"{self.url}/console/ask", json=body) as answered:
                assert answered.status == 200, await answered.text()
                return await answered.text()

    @property
    def variables(self) -> dict[str, str]:
        """Environment of the program."""
        kept = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME")
            if name in os.environ
        }
        told = {"FOOTNOTE_HOME": str(self.home), "FOOTNOTE_STOP_AT": self.rung, **SLIM}
        return {**kept, **told, **self.environment}


async def _count_live(database: Database, name: str, rungs: tuple[str, ...]) -> int:
    """Count a channel's files that are live at one of the rungs, from the running program's database."""
    try:
        channel = await Channels(database).by_name(name)
    except UnknownChannel:
        return 0
    documents = await Catalog(database).documents(channel.id)
    return sum(document.rung in rungs for document in documents)
