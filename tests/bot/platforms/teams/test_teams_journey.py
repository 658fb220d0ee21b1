"""End-to-end questions through Microsoft's Agents Playground, in every kind of conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from engines.playground import (
    GENERAL,
    GROUP,
    OPERATIONS,
    PERSONAL,
    TENANT,
    Playground,
    StartPlayground,
)
from engines.support.ports import free_port
from fakes.core import WORDS
from playwright.async_api import Browser

from bot.platforms.teams.adapter import TeamsAdapter
from storage.models import ChannelKey, Platform

pytestmark = pytest.mark.engine("playground")


@dataclass(frozen=True)
class Tenant:
    """A Teams tenant with our bot in it."""

    teams: Playground
    inbox: Any


@pytest.fixture
async def tenant(
    start_playground: StartPlayground,
    new_inbox: Callable[[], Any],
    development_door: Callable[[Any], TeamsAdapter],
) -> AsyncIterator[Tenant]:
    """Yield the Playground with a bot in development mode."""
    inbox, port = new_inbox(), free_port()
    async with AsyncExitStack() as stack:
        inbox.door = development_door(inbox)
        stack.push_async_callback(inbox.door.aclose)
        stack.push_async_callback(inbox.door.stop)
        app = web.Application()
        inbox.door.add_routes(app)
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", port).start()
        teams = await start_playground(f"http://127.0.0.1:{port}/api/messages")
        yield Tenant(teams, inbox)


def bodies(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the activities that the bot sent, all accepted by the Playground."""
    assert all(call["response"]["statusCode"] in (200, 201, 202) for call in calls), calls
    return [call["request"]["body"] for call in calls]


@pytest.mark.long
async def test_a_question_is_answered_with_citations_and_buttons(tenant: Tenant) -> None:
    """A placeholder, and the answer in its place with native citations and links: one message.

    In a personal chat the placeholder is a stream, in others a message after a typing indicator.
    """
    before = 0
    for count, conversation in enumerate((PERSONAL, GROUP, GENERAL, OPERATIONS), start=1):
        seen_as = await tenant.teams.say(conversation, "when do backups run?", conversation != PERSONAL)
        calls = await tenant.teams.answered(count)
        require_answer(calls[before:], conversation)
        before = len(calls)
        message = list(tenant.inbox.kept.values())[-1]
        assert len(tenant.inbox.kept) == count
        assert message.key == ChannelKey(Platform("teams"), TENANT, conversation)
        thread = seen_as if ";messageid=" in seen_as else ""
        assert (message.thread, message.text) == (thread, "when do backups run?")


def require_answer(calls: list[dict[str, Any]], conversation: str) -> None:
    """Check the calls of one answer in order."""
    *typing, placeholder, answer = bodies(calls)
    placed = calls[-2]["response"]["body"]["id"]
    assert placeholder["text"] == WORDS.searching
    if conversation == PERSONAL:
        assert typing == []
        (begun,), (*_, ended) = placeholder["entities"], answer["entities"]
        assert (begun["streamType"], begun["streamSequence"]) == ("informative", 1)
        assert (ended["streamType"], ended["streamId"]) == ("final", placed)
        assert answer["channelData"] == {"feedbackLoop": {"type": "default"}}
    else:
        assert [one["type"] for one in typing] == ["typing"]
        assert calls[2]["request"]["method"] == "PUT"
        assert answer["id"] == placed
    text, sources = answer["text"].rsplit("\n\n", 1)
    assert text.endswith("backups run daily at 2:00 AM [1].")
    (claim,) = answer["entities"][0]["citation"]
    assert claim["position"] == 1
    assert claim["appearance"]["url"].startswith("http://127.0.0.1:8765/v/")
    assert sources.endswith(f"]({claim['appearance']['url']})")
    cards = [card["content"]["body"] for card in answer.get("attachments", ())]
    below = [one["title"] for body in cards for row in body for one in row["actions"]]
    assert below == [WORDS.why] * (conversation == PERSONAL)


async def test_a_reply_in_a_thread_belongs_to_its_channel(tenant: Tenant) -> None:
    """Two posts of one channel are two threads of one tenant.

    A message received only through a tenant-wide permission asks nothing.
    """
    await tenant.teams.send(
        {
            "type": "message",
            "id": "overheard",
            "text": "lunch?",
            "serviceUrl": f"{tenant.teams.url}/_connector",
            "conversation": {"conversationType": "channel", "id": OPERATIONS, "tenantId": TENANT},
        }
    )
    thread = await tenant.teams.say(OPERATIONS, "first", mention=True)
    await tenant.teams.answered()
    await tenant.teams.say(thread, "second", mention=True)
    calls = await tenant.teams.answered(2)
    assert all("messageid" in call["request"]["url"] for call in calls)
    assert {message.key.conversation for message in tenant.inbox.kept.values()} == {OPERATIONS}
    assert {message.thread for message in tenant.inbox.kept.values()} == {thread}
    assert [message.text for message in tenant.inbox.kept.values()] == ["first", "second"]


async def test_four_conversations_at_once_never_share_an_answer(
    tenant: Tenant, name_of: Callable[[str], str]
) -> None:
    """A personal chat, a group chat and two channels have four tenants."""
    places = [(PERSONAL, False), (GROUP, True), (GENERAL, True), (OPERATIONS, True)]
    await asyncio.gather(*(tenant.teams.say(place, "when?", mention) for place, mention in places))
    calls = await tenant.teams.answered(4)
    assert len({message.key.tenant for message in tenant.inbox.kept.values()}) == 4
    for place, _ in places:
        mine = [call for call in calls if _is_in(call, place)]
        others = {other for other, _ in places} - {place}
        assert len(mine) == (2 if place == PERSONAL else 3)
        assert not any(name_of(other) in str(mine) for other in others)


@pytest.mark.engine("chromium")
async def test_the_browser_shows_the_answer_with_citations_and_buttons(
    tenant: Tenant, browser: Browser, tmp_path: Path
) -> None:
    """Shows the literal text, a citation per mark, and a link per source."""
    page = await tenant.teams.open(browser)
    await tenant.teams.write(page, "show me all the rules")
    await page.get_by_text("p. 8 · 7.pdf").first.wait_for()
    assert "<b>all</b> *.bak & _old_ files" in await page.inner_text("body")
    assert await page.locator("a.fai-Citation").count() == 7
    opening = page.locator('a[href^="http://127.0.0.1:8765/v/"]:not(.fai-Citation)')
    assert await opening.all_inner_texts() == [f"[{n}] p. {n + 1} · {n}.pdf" for n in range(1, 8)]
    await page.screenshot(path=tmp_path / "teams.png")


def _is_in(call: dict[str, Any], conversation: str) -> bool:
    return conversation.replace(":", "%3A").replace("@", "%40") in call["request"]["url"]
