"""The App Home by the whole program behind a real Slack server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import ALICE, APP_TOKEN, BOT_TOKEN, HR, IT, TEAM, SlackDouble, StartSlack
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import pdf

from bot.core.notifications.notification_wording import HOME_LEAD

CANARY = "Zanzibarium"


async def homes(slack: SlackDouble) -> list[dict[str, Any]] | None:
    """What was published, oldest first."""
    calls = [entry for entry in await slack.log() if entry["summary"] == "views.publish"]
    return calls or None


@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_the_home_lists_the_documents_of_the_persons_channels(
    program: Program, start_slack: StartSlack, sop: Path, browser: Browser
) -> None:
    """Shows documents, news and help; a channel that Slack does not list is not there."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_API_URL": slack.api_url,
        "SLACK_APP_TOKEN": APP_TOKEN,
        "FOOTNOTE_RECEIPTS": "off",
    }
    async with program.serving():
        program.drop(f"sl_{TEAM}_{IT}", sop)
        program.drop(f"sl_{TEAM}_{HR}", pdf("Leave is 30 days a year."), "leave.pdf")
        program.drop(f"sl_{TEAM}_C0BOARD01", pdf(f"The secret project is called {CANARY}."), f"{CANARY}.pdf")
        for channel in (IT, HR, "C0BOARD01"):
            await program.until_live(f"sl_{TEAM}_{channel}", 1)
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await slack.post("/_control/open-home", user=ALICE)
        (home,) = await until(lambda: homes(slack), log=lambda: program.log)
        words = json.dumps(home, ensure_ascii=False)
        assert HOME_LEAD in words
        assert "#it-ops" in words
        assert sop.name.split("-")[0] in words
        assert "leave.pdf" in words
        assert CANARY not in words
        await page.locator("button.sidebar-item", has_text="footnote").click()
        await page.get_by_text("SOP-IT-04").first.wait_for()
        await page.screenshot(path=program.home / "home.png")
