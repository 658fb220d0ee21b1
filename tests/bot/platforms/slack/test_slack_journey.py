"""End-to-end questions through a real Slack test server, over the Events API and Socket Mode."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from engines.slack import APP_TOKEN, BOT, HR, IT, SECRET, SlackDouble, StartSlack
from engines.support.ports import free_port
from fakes.core import WORDS
from harness.waiting import until, until_true
from playwright.async_api import Browser

from bot.platforms.slack.adapter import SlackAdapter
from bot.settings import BotSettings

pytestmark = pytest.mark.engine("slack")


@dataclass(frozen=True)
class Workspace:
    """A Slack workspace with our bot in it."""

    slack: SlackDouble
    inbox: Any


@pytest.fixture(params=["events", "socket"])
async def workspace(
    request: pytest.FixtureRequest,
    start_slack: StartSlack,
    open_workspace: Callable[[str, StartSlack, AsyncExitStack], Awaitable[Workspace]],
) -> AsyncIterator[Workspace]:
    """Yield the bot behind the Events API, then behind Socket Mode."""
    async with AsyncExitStack() as stack:
        yield await open_workspace(request.param, start_slack, stack)


async def test_a_mention_is_answered_in_its_thread_with_a_button(workspace: Workspace) -> None:
    """The answer replaces the placeholder: one message with one source button."""
    asked = await workspace.slack.say(IT, f"<@{BOT}> when do backups run?")
    (reply,) = await workspace.slack.replies(IT)
    assert reply["thread_ts"] == asked
    section, row = reply["blocks"]
    button, *others = row["elements"]
    assert [one["action_id"] for one in others] == ["feedback-good", "feedback-bad", "feedback-why"]
    link = f"<{button['url']}|[1]>"
    assert section["text"]["text"] == f"For {IT}: backups &lt;b&gt;run&lt;/b&gt; *daily* at 2:00 AM {link}."
    assert button["text"]["text"] == f"[1] p. 2 · Rules of {IT}"
    assert button["url"].startswith("http://127.0.0.1:8765/v/")


async def test_a_mention_that_arrives_as_two_events_is_answered_once(workspace: Workspace) -> None:
    """The server sends both message and app_mention for a sentence; it gets one answer."""
    await workspace.slack.say(IT, f"<@{BOT}> when do backups run?")
    await workspace.slack.replies(IT)
    await until_true(lambda: workspace.inbox.arrivals == 2)
    assert (workspace.inbox.arrivals, len(workspace.inbox.kept)) == (2, 1)
    assert len(await workspace.slack.replies(IT)) == 1


async def test_in_a_thread_of_people_we_answer_a_mention_only(workspace: Workspace) -> None:
    """We stay out of a thread among people until a mention."""
    root = await workspace.slack.say(IT, "has anybody seen the backup rules?")
    await workspace.slack.say(IT, "no, sorry", thread=root)
    await workspace.slack.say(IT, f"<@{BOT}> when do backups run?", thread=root)
    (reply,) = await workspace.slack.replies(IT)
    assert reply["thread_ts"] == root
    assert len(workspace.inbox.kept) == 1


async def test_a_follow_up_needs_no_mention_where_we_answered(workspace: Workspace) -> None:
    """A reply below our answer asks; one that mentions another person, or a new message, does not."""
    slack = workspace.slack
    root = await slack.say(IT, f"<@{BOT}> when do backups run?")
    await slack.replies(IT)
    await slack.say(IT, "<@U0ALICE01> can you check that?", thread=root)
    await slack.say(IT, "what about restores?")
    await slack.say(IT, "and who checks them?", thread=root)
    replies = await slack.replies(IT, 2)
    assert [reply["thread_ts"] for reply in replies] == [root, root]
    await asyncio.sleep(0.5)
    asked = [message.text for message in workspace.inbox.kept.values()]
    assert asked == ["when do backups run?", "and who checks them?"]


async def test_a_direct_message_is_answered_outside_a_thread(workspace: Workspace) -> None:
    """Direct messages need neither mention nor thread."""
    direct = await workspace.slack.open_dm()
    await workspace.slack.say(direct, "when do backups run?")
    (reply,) = await workspace.slack.replies(direct)
    assert "thread_ts" not in reply
    assert f"For {direct}" in reply["blocks"][0]["text"]["text"]


async def test_two_channels_never_see_each_others_answers(workspace: Workspace) -> None:
    """With simultaneous questions each channel gets its own answer only."""
    await asyncio.gather(*(workspace.slack.say(c, f"<@{BOT}> when do backups run?") for c in (IT, HR)))
    (first,), (second,) = await workspace.slack.replies(IT), await workspace.slack.replies(HR)
    assert HR not in str(first["blocks"])
    assert IT not in str(second["blocks"])
    tenants = {message.key.tenant for message in workspace.inbox.kept.values()}
    assert tenants == {f"sl_T0ACME001_{IT}", f"sl_T0ACME001_{HR}"}


@pytest.mark.engine("chromium")
async def test_a_person_sees_the_answer_and_its_buttons_in_the_browser(
    workspace: Workspace, browser: Browser, tmp_path: Path
) -> None:
    """In the browser each [n] is a link, with five buttons and an overflow menu; a click is acknowledged."""
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    await page.goto(workspace.slack.url)
    await page.fill("textarea", f"<@{BOT}> show me all the rules")
    await page.click("text=Send")
    await page.get_by_text("1 reply").click()
    await page.get_by_text(WORDS.more_sources(2)).wait_for()
    await page.screenshot(path=tmp_path / "slack.png")
    buttons = page.locator(".bk-actions button")
    labels = [f"[{n}] p. {n + 1} · {n}.pdf" for n in range(1, 6)]
    assert await buttons.all_inner_texts() == [*labels, "👍", "👎", "Why?"]
    marks = page.locator('a[href^="http://127.0.0.1:8765/v/"]')
    assert (await marks.all_inner_texts())[:7] == [f"[{n}]" for n in range(1, 8)]
    await buttons.first.click()
    log: list[Any] = []

    async def is_interactive() -> bool:
        log[:] = await workspace.slack.log()
        return "interactive" in {entry["kind"] for entry in log}

    await until(is_interactive)
    assert not [entry for entry in log if re.match("HTTP [45]", str(entry["summary"]))]


@pytest.fixture
def open_workspace(
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> Callable[[str, StartSlack, AsyncExitStack], Awaitable[Workspace]]:
    """Return ``await open_workspace(mode, start_slack, stack)``: Slack and bot with each other's URLs."""

    async def open_it(mode: str, start: StartSlack, stack: AsyncExitStack) -> Workspace:
        port = free_port()
        slack = await start(mode, f"http://127.0.0.1:{port}/slack/events")
        secret = {"slack_app_token": APP_TOKEN} if mode == "socket" else {"slack_signing_secret": SECRET}
        inbox = new_inbox()
        inbox.door = door_for(settings_for(slack.api_url, **secret), inbox)
        await _serve(inbox.door, port, stack)
        await inbox.door.start()
        stack.push_async_callback(inbox.door.stop)
        await _until_ready(inbox.door)
        return Workspace(slack, inbox)

    return open_it


async def _serve(door: SlackAdapter, port: int, stack: AsyncExitStack) -> None:
    app = web.Application()
    door.add_routes(app)
    runner = web.AppRunner(app)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", port).start()


async def _until_ready(door: SlackAdapter) -> None:
    await until(door.is_ready)
