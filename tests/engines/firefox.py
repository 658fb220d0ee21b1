"""firefox: Debian's own browser, driven over WebDriver BiDi, which it supports natively.

Playwright's driver needs commands that the long-term release lacks. Each browser has a new profile, connects
to the tests only, and is closed by the fixture.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

from engines import apt_install

NAME = "firefox"
REMEDY = "sudo apt-get install -y firefox-esr"
BINDS_EVERYWHERE = False

START_SECONDS, ANSWER_SECONDS = 60, 30
# Preferences that disable telemetry and update requests.
QUIET = {
    "app.update.disabledForTesting": "true",
    "browser.safebrowsing.update.enabled": "false",
    "browser.shell.checkDefaultBrowser": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
    "extensions.systemAddon.update.enabled": "false",
    "network.captive-portal-service.enabled": "false",
    "network.connectivity-service.enabled": "false",
    "services.settings.server": '"data:,"',
    "toolkit.telemetry.enabled": "false",
}
DARK = {"layout.css.prefers-color-scheme.content-override": "0"}
_LISTENS = re.compile(rb"WebDriver BiDi listening on (ws://127\.0\.0\.1:\d+)")

Json = dict[str, Any]
OpenFirefox = Callable[..., AbstractAsyncContextManager["FirefoxPage"]]


def program() -> str | None:
    """Return the path of the browser."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


def missing() -> str | None:
    """Return why it cannot run here, or None."""
    return None if program() else "Debian's firefox-esr is not installed"


def fetch() -> None:
    """Install it, as root."""
    if not program():
        apt_install("firefox-esr")


class FirefoxPage:
    """The only page of a browser; ``complaints`` collects console messages and policy violations."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._context = ""

    async def begin(self) -> None:
        """Start the session, subscribe to the console, and find the page."""
        await self._send("session.new", capabilities={})
        await self._send("session.subscribe", events=["log.entryAdded"])
        tree = await self._send("browsingContext.getTree")
        self._context = tree["contexts"][0]["context"]

    async def listen(self) -> None:
        """Dispatch the browser's messages until it is closed."""
        async for message in self._socket:
            said: Json = message.json()
            if said.get("type") == "event":
                self.complaints.append(str(said["params"].get("text")))
            elif (waiting := self._waiting.pop(said.get("id", 0), None)) and not waiting.done():
                waiting.set_result(said)

    async def goto(self, url: str) -> None:
        """Open a URL and wait until it is loaded."""
        await self._send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def resize(self, width: int, height: int) -> None:
        """Set the viewport."""
        viewport = {"width": width, "height": height}
        await self._send("browsingContext.setViewport", context=self._context, viewport=viewport)

    async def evaluate(self, script: str) -> Any:
        """Return the value of a script, awaiting promises; the page's policy does not apply.

        Raises:
            AssertionError: the script failed.
        """
        done = await self._send(
            "script.evaluate", expression=script, target={"context": self._context}, awaitPromise=True
        )
        assert done["type"] == "success", done
        return _plain(done["result"])

    async def wait_for(self, selector: str) -> None:
        """Wait until a CSS selector matches on a loaded page."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while not await self._is_there(selector):
                await asyncio.sleep(0.05)

    async def _is_there(self, selector: str) -> bool:
        try:
            there = f"document.readyState === 'complete' && document.querySelector({selector!r}) !== null"
            return bool(await self.evaluate(there))
        except AssertionError:  # the page is navigating
            return False

    async def click(self, selector: str) -> None:
        """Click the element of a CSS selector with the mouse."""
        x, y = await self.evaluate(
            f"(() => {{ const one = document.querySelector({selector!r});"
            " one.scrollIntoView({ block: 'center', behavior: 'instant' });"
            " const box = one.getClientRects()[0];"
            " return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]; })()"
        )
        steps = [{"type": "pointerMove", "x": x, "y": y}]
        steps += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        await self._act({"type": "pointer", "id": "mouse", "actions": steps})

    async def type(self, text: str) -> None:
        """Press these keys; U+E007 is Enter."""
        steps = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        await self._act({"type": "key", "id": "keys", "actions": steps})

    async def screenshot(self, *, path: Path, full_page: bool = False) -> None:
        """Save a screenshot of the viewport, or of the whole page."""
        origin = "document" if full_page else "viewport"
        taken = await self._send("browsingContext.captureScreenshot", context=self._context, origin=origin)
        path.write_bytes(base64.b64decode(taken["data"]))

    async def _act(self, source: Json) -> None:
        await self._send("input.performActions", context=self._context, actions=[source])

    async def _send(self, method: str, **params: Any) -> Json:
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(ANSWER_SECONDS):
            said = await waiting
        assert said["type"] == "success", said
        result: Json = said["result"]
        return result


def _plain(value: Json) -> Any:
    """Return a BiDi value as plain JSON."""
    match value["type"]:
        case "array":
            return [_plain(one) for one in value["value"]]
        case "object":
            return {name: _plain(one) for name, one in value["value"]}
        case "string" | "number" | "boolean":
            return value["value"]
    return None


@pytest.fixture
def firefox(tmp_path: Path) -> OpenFirefox:
    """``firefox(is_dark=...)`` opens a new headless browser and yields its page."""

    @asynccontextmanager
    async def open_page(*, is_dark: bool = False) -> AsyncIterator[FirefoxPage]:
        profile = Path(mkdtemp(prefix="firefox-", dir=tmp_path))
        preferences = QUIET | (DARK if is_dark else {})
        lines = [f'user_pref("{name}", {value});' for name, value in preferences.items()]
        (profile / "user.js").write_text("\n".join(lines))
        async with _running(profile) as address, ClientSession() as http:
            async with http.ws_connect(f"{address}/session", max_msg_size=0) as socket:
                page = FirefoxPage(socket)
                listening = asyncio.create_task(page.listen())
                try:
                    await page.begin()
                    yield page
                finally:
                    listening.cancel()

    return open_page


@asynccontextmanager
async def _running(profile: Path) -> AsyncIterator[str]:
    """Run the browser; yield the URL of its debugging port."""
    process = await asyncio.create_subprocess_exec(
        program() or NAME,
        *("--headless", "--remote-debugging-port=0", "--profile", str(profile), "about:blank"),
        env={**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            while not (found := _LISTENS.search(line := await process.stderr.readline())):
                assert line, "it ended before it listened"
        draining = asyncio.create_task(process.stderr.read())
        yield found[1].decode()
        draining.cancel()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its child processes, which are in its group
        await process.wait()
