"""The stub platform: one folder and one line of a list, and all that people do in a chat works there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fakes.echo_chat import Echo
from harness.empty_homes import make_sqlite
from harness.waiting import until
from sources import ROOT

from bot.answers.pipeline import Answering
from bot.app import ChatPlatforms
from bot.bootstrap import open_home
from bot.core.models import AnswerFigure
from bot.platforms.registry import PLATFORMS
from bot.public_links import open_links
from bot.settings import BotSettings, Settings
from ingestion.settings import IngestionSettings
from platforms.stub.platform import EVENTS, SECRET, STUB, STUB_PLATFORM
from storage.errors import DocumentError
from storage.models import PageImage
from storage.settings import StorageSettings
from storage.stores import Stores

# The line that registers it.
WITH_STUB = (*PLATFORMS, STUB_PLATFORM)


@dataclass
class Office:
    """A service whose people chat on the stub."""

    client: TestClient[Any, Any]
    stores: Stores
    platforms: ChatPlatforms
    answering: Echo
    numbers: Any

    async def send(self, kind: str, text: str = "", id: int = 0, secret: str = SECRET) -> int:
        """Send an event of a person in a room; return the status."""
        event = {"type": kind, "house": "h1", "room": "lobby", "person": "ann", "text": text, "id": id}
        async with self.client.post(EVENTS, json=event, headers={"X-Stub-Secret": secret}) as response:
            return response.status

    async def texts(self) -> list[str]:
        """Return the texts of the room's messages."""
        async with self.client.get("/stub/rooms/lobby") as response:
            return [message.get("text", "") for message in await response.json()]

    async def until_shown(self, *texts: str) -> None:
        """Wait until the room shows exactly these messages."""

        async def are_shown() -> bool:
            return await self.texts() == list(texts)

        await until(are_shown, every=0.02)


async def draw_nothing(figure: AnswerFigure) -> PageImage:
    """Raise DocumentError: no page can be rendered here."""
    raise DocumentError(f"page {figure.page} cannot be drawn")


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Yield the running service."""
    make_sqlite(tmp_path)
    settings = Settings(StorageSettings(home=tmp_path), BotSettings(), IngestionSettings())
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_home(settings))
        links, echo = await open_links(settings, stores.database), Echo()
        answering = cast("Answering", echo)
        platforms = ChatPlatforms(settings, stores, answering, links, draw_nothing, specs=WITH_STUB)
        app = web.Application()
        platforms.add_routes(app)
        client = await stack.enter_async_context(TestClient(TestServer(app)))
        await platforms.start()
        stack.push_async_callback(platforms.stop)
        yield Office(client, stores, platforms, echo, count())


def test_a_platform_is_one_folder_of_under_400_lines() -> None:
    """Counts the stub's lines, comments and docstrings included."""
    files = (ROOT / "tests" / "platforms" / "stub").glob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < 400


async def test_a_question_is_answered_edited_and_deleted(office: Office) -> None:
    """Redelivered events change nothing; a forged one is refused."""
    assert await office.send("question", "When?", 1, secret="guessed") == 401
    for _ in range(2):
        assert await office.send("question", "When?", 1) == 200
    await office.until_shown("When?")
    assert await office.send("edit", "Where?", 1) == 200
    await office.until_shown("Where?")
    assert office.answering.asked == ["When?", "Where?"]
    assert await office.send("delete", "", 1) == 200
    await office.until_shown("")


async def test_a_question_in_progress_is_stopped(office: Office) -> None:
    """The room shows that it was stopped; the answer is never given."""
    office.answering.gate.clear()
    await office.send("question", "When?", 1)

    async def is_asked() -> bool:
        return office.answering.asked == ["When?"]

    await until(is_asked, every=0.02)
    assert await office.send("stop", "", 1) == 200
    office.answering.gate.set()

    async def is_stopped() -> bool:
        return "stopped" in "".join(await office.texts()).lower()

    await until(is_stopped, every=0.02)


async def test_a_joined_room_is_a_channel_of_the_stub(office: Office) -> None:
    """Its tenant begins with the platform's name; storage needs no entry for it."""
    assert await office.send("join") == 200
    (channel,) = await office.stores.channels.all(STUB)
    assert (channel.name, channel.installation, channel.is_local) == ("lobby", "h1", False)
    assert channel.tenant.startswith("stub_")
    assert (await office.stores.channels.ensure_tenant(channel.tenant)).platform == STUB
    assert await office.send("leave") == 200


async def test_a_connected_platform_is_named_and_checked(office: Office) -> None:
    """The banner names it, and readiness asks it; platforms without settings are not connected."""
    assert (office.platforms.names, list(office.platforms.checks)) == (["Stub"], [STUB])
    assert office.platforms.reasons == {"stub": "its rooms are closed"}
