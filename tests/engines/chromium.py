"""chromium: Debian's own browser, driven by playwright's Python package.

One per test process, because starting it and its driver takes longer than most browser tests. Each test has
its own WebSocket, sees only its own contexts and closes them.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import aiohttp
import pytest
from playwright._impl._driver import compute_driver_executable, get_driver_env
from playwright._impl.browser import Browser as ConnectedBrowser
from playwright._impl.connection import Connection
from playwright.async_api import Browser, Page

from engines import apt_install

NAME = "chromium"
REMEDY = "sudo apt-get install -y chromium"
BINDS_EVERYWHERE = False

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def program() -> str | None:
    """Return the path of the browser."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if program() else "Debian's chromium is not installed"


def fetch() -> None:
    """Install it, as root."""
    if not program():
        apt_install("chromium")


@cache
def browser_server() -> str:
    """Start the browser of this test process; return the URL of its WebSocket."""
    home = Path(tempfile.mkdtemp(prefix="chromium-"))
    config = {"executablePath": program(), "args": FLAGS, "host": "127.0.0.1", "port": 0}
    (home / "server.json").write_text(json.dumps(config))
    command = [*compute_driver_executable(), "launch-server", "--browser", "chromium"]
    process = subprocess.Popen(
        [*command, "--config", str(home / "server.json")],
        env=get_driver_env() | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")},
        stdout=subprocess.PIPE,
        text=True,
    )

    def end() -> None:
        process.terminate()
        process.wait(10)
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(end)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("ws://"), "the browser did not start"
    return url


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Browser]:
    """Yield the shared browser; ``chromium.connect`` would start another driver just to connect."""
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
        connection, unsent = Connection(asyncio.get_running_loop()), asyncio.Queue[dict[str, object]]()
        connection.mark_as_remote()
        connection.onmessage = unsent.put_nowait

        async def send() -> None:
            while True:
                await socket.send_str(json.dumps(await unsent.get()))

        async def receive() -> None:
            async for message in socket:
                connection.dispatch(json.loads(message.data))
            connection.close()  # fails pending requests

        tasks = [asyncio.create_task(send()), asyncio.create_task(receive())]
        try:
            playwright = await connection.initialize_playwright()
            served = ConnectedBrowser.from_(playwright._initializer["preLaunchedBrowser"])
            served._connect_to_browser_type(playwright.chromium, {}, None)
            yield Browser(served)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """The headless browser of this process, without contexts of other tests."""
    async with connected(await asyncio.to_thread(browser_server)) as shared:
        yield shared
        for context in shared.contexts:
            await context.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page on which no script error and no policy violation may occur."""
    context = await browser.new_context(viewport={"width": 1200, "height": 800})
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield opened
    await context.close()
    assert complaints == []
