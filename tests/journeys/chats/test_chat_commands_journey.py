"""Chat commands in a real Slack server: sources, forgetting a thread, admin commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engines.slack import ALICE, BOT, IT, TEAM, StartSlack, slack_settings
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser

CHANNEL = f"sl_{TEAM}_{IT}"


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_chat_commands_of_users_and_admins(
    program: Program, start_slack: StartSlack, sop: Path, browser: Browser, tmp_path: Path
) -> None:
    """Sources are repeated with live buttons, and a thread's memory is erased.

    An admin command is refused until Alice is an admin: then a paused folder adds no file. The audit log has
    all of it.
    """
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    async with program.serving():
        program.drop(CHANNEL, sop)
        await program.until_live(CHANNEL, 1)
        root = await slack.say(IT, f"<@{BOT}> when do backups run?")
        (answer,) = await slack.replies(IT)
        await slack.say(IT, f"<@{BOT}> sources of the last answer", thread=root)
        (again,) = await until(lambda: slack.posted(IT, WORDS.sources_again), log=lambda: program.log)
        assert "/v/" in json.dumps(again["blocks"])
        await slack.say(IT, f"<@{BOT}> documents since 2020", thread=root)
        await until(lambda: slack.posted(IT, WORDS.such_documents(1)), log=lambda: program.log)
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("replies").first.click()
        await page.get_by_text(WORDS.such_documents(1)).wait_for()
        await page.screenshot(path=tmp_path / "commands.png")
        await slack.say(IT, f"<@{BOT}> forget this thread", thread=root)
        await until(lambda: slack.posted(IT, WORDS.forgot(1)), log=lambda: program.log)
        await slack.say(IT, f"<@{BOT}> pause all folders", thread=root)
        await until(lambda: slack.posted(IT, WORDS.admins_only), log=lambda: program.log)
    program.environment["FOOTNOTE_ADMINS"] = f"slack:{TEAM}:{ALICE}"
    async with program.serving():
        await slack.say(IT, f"<@{BOT}> status")
        await until(lambda: slack.posted(IT, WORDS.folders_known(1)), log=lambda: program.log)
        await slack.say(IT, f"<@{BOT}> pause all folders")
        await until(lambda: slack.posted(IT, WORDS.paused(1)), log=lambda: program.log)
        await slack.say(IT, f"<@{BOT}> resume folders")
        await until(lambda: slack.posted(IT, WORDS.resumed(1)), log=lambda: program.log)
    entries = [json.loads(line) for line in program.run("audit", "--json").stdout.splitlines()]
    done = [(one["action"], one["is_done"]) for one in entries]
    assert done == [("forget", True), ("pause", False), ("status", True), ("pause", True), ("resume", True)]
    assert {one["actor"] for one in entries} == {f"slack:{TEAM}:{ALICE}"}
    assert "pause (refused)" in program.run("audit").stdout
    assert answer["ts"]
