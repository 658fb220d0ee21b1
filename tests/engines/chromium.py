"""chromium: Debian's own browser, driven by playwright's Python package.

It starts with a profile of its own, speaks to nobody but the tests, and is closed by the fixture.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

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
    """Where the browser lies."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def missing() -> str | None:
    """Whether it is installed."""
    return None if program() else "Debian's chromium is not installed"


def fetch() -> None:
    """Install it, which needs root."""
    if not program():
        apt_install("chromium")


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A fresh headless browser."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=program(),
            args=FLAGS,
            env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")},
        )
        yield started
        await started.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page of the browser in which no script may fail and nothing may be refused by a policy."""
    context = await browser.new_context(viewport={"width": 1200, "height": 800})
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield opened
    await context.close()
    assert complaints == []
