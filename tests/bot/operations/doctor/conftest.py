"""Fixtures for the doctor: an isolated installation, and servers with a fixed response."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness.doctor import Answer, Doctor, Serve
from harness.empty_homes import make_sqlite

from bot.answers.citations.shared_keys import SharedKeyRing
from storage.installations.link_keys import LinkKeyStore
from storage.sql.database import Database

OURS = ("FOOTNOTE_", "SLACK_", "OPENAI_", "WEAVIATE_", "DATABASE_URL", "MicrosoftApp", "AWS_")


@pytest.fixture
async def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Return the doctor of an empty home with tables, keys and an inbox, and no other settings."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    url = make_sqlite(home)
    (home / "inbox").mkdir()
    monkeypatch.setenv("FOOTNOTE_HOME", str(home))
    async with aclosing(await Database.open(url)) as database:
        await SharedKeyRing.open(LinkKeyStore(database))
    return Doctor(home, monkeypatch)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Yield a function that starts a server."""
    async with AsyncExitStack() as stack:

        async def start(answer: Answer) -> str:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", answer)
            server = await stack.enter_async_context(TestServer(app, host="127.0.0.1"))
            return f"http://127.0.0.1:{server.port}"

        yield start
