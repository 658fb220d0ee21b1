"""Drop receipts of the whole program, in a real Slack server and Microsoft's Agents Playground."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from engines.playground import OPERATIONS, TENANT, Playground, StartPlayground
from engines.slack import HR, IT, TEAM, SlackDouble, StartSlack, slack_settings
from engines.weaviate import RealWeaviate
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import faq_pdf, pdf

from bot.chat.notifications.notification_wording import NEWS, SHOW
from storage.models import ChannelKey, Platform

CANARY = "Zanzibarium"


async def serve_slack(program: Program, start_slack: StartSlack, **settings: str) -> SlackDouble:
    """Start a Slack server and configure the program for it."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, **{"FOOTNOTE_RECEIPTS": "channel", **settings})
    return slack


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_pdf_dropped_for_a_slack_channel_gets_a_receipt(
    program: Program, start_slack: StartSlack
) -> None:
    """One line with one row of buttons, which ask what is new and open page 1."""
    slack = await serve_slack(program, start_slack)
    async with program.serving():
        program.drop(f"sl_{TEAM}_{IT}", faq_pdf(), "backup-faq.pdf")
        program.drop(f"sl_{TEAM}_{HR}", pdf(f"The secret project is called {CANARY}."), "secret.pdf")
        (receipt,) = await until(lambda: slack.posted(IT, "1 page"), log=lambda: program.log)
        assert CANARY not in json.dumps(receipt, ensure_ascii=False)
        assert re.match(r"Added “[^”]+” \(1 page\)\.", receipt["text"])
        row = receipt["blocks"][-1]
        assert [one["text"]["text"] for one in row["elements"]] == [NEWS, SHOW]
        async with slack.session.get(row["elements"][1]["url"]) as response:
            assert response.status == 200
        await until(lambda: slack.posted(HR, "Added"), log=lambda: program.log)
        assert await slack.posted(IT, "secret") is None


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_six_files_dropped_at_once_get_one_receipt(program: Program, start_slack: StartSlack) -> None:
    """Shows that it waits until no file of the channel is being read."""
    slack = await serve_slack(program, start_slack)
    async with program.serving():
        for number in range(6):
            text = f"Printer {number} stands in room {number}."
            program.drop(f"sl_{TEAM}_{IT}", pdf(text), f"p{number}.pdf")
        await program.until_live(f"sl_{TEAM}_{IT}", 6)
        receipts = await until(lambda: slack.posted(IT, "Added"), log=lambda: program.log)
        assert [one["text"] for one in receipts] == ["Added 6 documents (6 pages)."]


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_admins_are_notified_of_a_missing_folder_and_its_return(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Shows that the folder's own channel is not notified."""
    slack = await serve_slack(
        program, start_slack, FOOTNOTE_ADMIN_CHANNEL=f"sl_{TEAM}_{HR}", FOOTNOTE_RECEIPTS="off"
    )
    channel = f"sl_{TEAM}_{IT}"
    async with program.serving():
        file = program.drop(channel, sop)
        await program.until_live(channel, 1)
        away = file.parent.rename(program.home / "away")
        await until(lambda: slack.posted(HR, channel), log=lambda: program.log)
        away.rename(file.parent)
        await until(lambda: slack.posted(HR, "everything works again"), log=lambda: program.log)
        assert await slack.posted(IT, "") is None


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("weaviate")
@pytest.mark.engine("chromium")
async def test_admins_in_slack_are_notified_of_an_index_outage(
    program: Program, start_slack: StartSlack, weaviate: RealWeaviate, browser: Browser, tmp_path: Path
) -> None:
    """A message when it lasted a minute and one when it ended, with screenshots."""
    slack = await serve_slack(
        program,
        start_slack,
        FOOTNOTE_ADMIN_CHANNEL=f"sl_{TEAM}_{HR}",
        **weaviate.settings,
        FOOTNOTE_INDEX_TIMEOUT="2",
    )
    async with program.serving():
        weaviate.pause()
        try:
            await until(lambda: slack.posted(HR, "Not ready since"), log=lambda: program.log)
        finally:
            weaviate.resume()
        await until(lambda: slack.posted(HR, "Ready again: the index"), log=lambda: program.log)
        assert len(await slack.messages(HR)) == 2
        assert await slack.posted(IT, "") is None
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        await page.goto(slack.url)
        await page.locator("button.sidebar-item", has_text="hr").click()
        await page.get_by_text("Ready again").first.wait_for()
        await page.screenshot(path=tmp_path / "outage.png")


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("weaviate")
@pytest.mark.engine("chromium")
async def test_admins_in_teams_are_notified_of_an_index_outage(
    program: Program,
    start_playground: StartPlayground,
    weaviate: RealWeaviate,
    browser: Browser,
    tmp_path: Path,
) -> None:
    """A message when it lasted a minute and one when it ended, with screenshots."""
    playground = await start_playground(f"{program.url}/api/messages")
    admins = ChannelKey(Platform("teams"), TENANT, OPERATIONS).tenant
    program.environment = {
        "FOOTNOTE_TEAMS_DEVELOPMENT": "true",
        "FOOTNOTE_ADMIN_CHANNEL": str(admins),
        "FOOTNOTE_INDEX_TIMEOUT": "2",
        **weaviate.settings,
    }
    async with program.serving():
        page = await playground.open(browser)
        await page.locator('[aria-label="IT - Operations"]').click()
        await playground.say(OPERATIONS, "help", mention=True)
        await until(lambda: playground.said("documents"), log=lambda: program.log)
        weaviate.pause()
        try:
            await until(lambda: playground.said("Not ready since"), log=lambda: program.log)
        finally:
            weaviate.resume()
        await until(lambda: playground.said("Ready again: the index"), log=lambda: program.log)
        assert len(await playground.said("Ready again") or ()) == 1
        await page.get_by_text("Ready again").first.wait_for()
        await page.screenshot(path=tmp_path / "outage.png")


@pytest.mark.long
@pytest.mark.engine("playground")
async def test_a_teams_receipt_waits_for_the_channels_address(
    program: Program, start_playground: StartPlayground
) -> None:
    """Shows that the receipt is posted as a card after the channel's first question."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true"}
    channel = ChannelKey(Platform("teams"), TENANT, OPERATIONS).tenant
    async with program.serving():
        program.drop(channel, faq_pdf(), "backup-faq.pdf")
        await program.until_live(channel, 1)
        await playground.say(OPERATIONS, "hello", mention=True)
        card = await until(lambda: receipt_card(playground), log=lambda: program.log)
        assert "1 page" in card
        assert NEWS in card


async def receipt_card(playground: Playground) -> str | None:
    """Return the posted card, as JSON."""
    for call in playground.calls():
        body = json.dumps(call["request"]["body"], ensure_ascii=False)
        if OPERATIONS in unquote(call["request"]["url"]) and "RichTextBlock" in body:
            return body
    return None
