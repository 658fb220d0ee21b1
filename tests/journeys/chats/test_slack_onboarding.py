"""Footnote is added to channels of a real Slack server: welcome, sample questions, channel name."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from engines.slack import IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.slack_events import Signed, joined
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import faq_pdf

from bot.chat.notifications.notification_wording import ASK, WELCOME_LEAD

CHANNEL = f"sl_{TEAM}_{IT}"


async def serve_slack(program: Program, start_slack: StartSlack) -> SlackDouble:
    """Start a Slack server over HTTP and configure the program for it."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    return slack


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_a_channel_is_welcomed_once_with_sample_questions(
    program: Program, start_slack: StartSlack, browser: Browser, tmp_path: Path
) -> None:
    """Document list, buttons, and an answer in the welcome's thread; repeats and a restart add none."""
    slack = await serve_slack(program, start_slack)
    signed = Signed(slack.session, program.url, SECRET)
    async with program.serving():
        program.drop(CHANNEL, faq_pdf(), "backup-faq.pdf")
        await program.until_live(CHANNEL, 1)
        assert [await signed.send(joined(IT, f"Ev{number}")) for number in range(2)] == [200, 200]
        (welcome,) = await until(lambda: slack.posted(IT, "I’m Footnote"), log=lambda: program.log)
        words = json.dumps(welcome, ensure_ascii=False)
        assert WELCOME_LEAD in words
        assert "I know 1 document in this channel:" in words
        buttons = [block for block in welcome["blocks"] if "accessory" in block]
        assert 1 <= len(buttons) <= 3
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("it-ops").first.click()
        await page.get_by_text("I’m Footnote").wait_for()
        await page.screenshot(path=tmp_path / "welcome.png")
        await page.get_by_role("button", name=ASK).first.click()
        (answer,) = await until(lambda: slack.posted(IT, "[1]"), log=lambda: program.log)
        assert answer["thread_ts"] == welcome["ts"]
        question = buttons[0]["accessory"]["value"]
        assert f"<@U0ALICE01>: {question}" in answer["text"]
        await page.get_by_text("1 reply").click()
        await page.get_by_text("[1]").first.wait_for()
        await page.screenshot(path=tmp_path / "clicked.png")
        listed = program.run("channels")
        assert "#it-ops" in listed.stdout, listed
        refused = program.run("documents", "--channel", "#it-ops")
        assert "use a name of the last column of `footnote channels`" in refused.stderr
    async with program.serving():
        assert await signed.send(joined(IT, "Ev9")) == 200
        await asyncio.sleep(4)
        assert len(await slack.posted(IT, "I’m Footnote") or ()) == 1
