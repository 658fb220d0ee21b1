"""Replies in a thread that Footnote answers in, by the whole program behind a real Slack server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from fakes.core import WORDS
from harness.program import Program
from playwright.async_api import Browser

CHANNEL = f"sl_{TEAM}_{IT}"


@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_a_reply_in_our_thread_is_answered_without_a_mention(
    program: Program, start_slack: StartSlack, sop: Path, browser: Browser, tmp_path: Path
) -> None:
    """It leans on the thread; what mentions somebody else, and what is said elsewhere, gets no answer."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url)
    async with program.serving():
        program.drop(CHANNEL, sop)
        await program.until_live(CHANNEL, 1)
        root = await slack.say(IT, f"<@{BOT}> when do backups run?")
        await slack.replies(IT)
        other = await slack.say(IT, "has anybody seen my cup?")
        await slack.say(IT, "which cup?", thread=other)
        await slack.say(IT, "<@U0ALICE01> can you check that?", thread=root)
        await slack.say(IT, "how often are they tested?", thread=root)
        replies = await slack.replies(IT, 2)
        await asyncio.sleep(1)
        assert len(await slack.replies(IT, 2)) == 2
        assert [reply["thread_ts"] for reply in replies] == [root, root]
        assert WORDS.understood(question="how often are they tested (backups run)?") in json.dumps(replies[1])
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("4 replies").click()
        await page.get_by_text("Understood as").wait_for()
        await page.screenshot(path=tmp_path / "thread.png")


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_thread_of_ours_is_known_after_a_restart_and_follow_ups_can_be_off(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Shows that SQL knows the thread, not the process; with the setting off a mention is needed again."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    async with program.serving():
        program.drop(CHANNEL, sop)
        await program.until_live(CHANNEL, 1)
        root = await slack.say(IT, f"<@{BOT}> when do backups run?")
        await slack.replies(IT)
    async with program.serving():
        await slack.say(IT, "how often are they tested?", thread=root)
        await slack.replies(IT, 2)
    program.environment["FOOTNOTE_THREAD_FOLLOW_UPS"] = "false"
    async with program.serving():
        await slack.say(IT, "and who is told?", thread=root)
        await slack.say(IT, f"<@{BOT}> who is told?", thread=root)
        replies = await slack.replies(IT, 3)
        await asyncio.sleep(1)
        assert len(await slack.replies(IT, 3)) == len(replies) == 3
