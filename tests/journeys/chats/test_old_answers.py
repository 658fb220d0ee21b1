"""A cited document is replaced, then withdrawn: the answer in a real Slack server is updated in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import pdf

CHANNEL = f"sl_{TEAM}_{IT}"
RULE = "The night shift resets the boiler valve every Tuesday."
FIRST = pdf(f"Boiler manual\n\n{RULE}")
SECOND = pdf("Boiler manual\n\nForeword of the second edition.", f"Valves\n\n{RULE}")


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_an_old_answer_reports_that_its_source_changed(
    program: Program, start_slack: StartSlack, browser: Browser, tmp_path: Path
) -> None:
    """Only subscribers of the page get a new message; the answer gets a line with a button.

    The button opens the same words in the new version, as does the old page's bar; the withdrawal is shown
    after a restart.
    """
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url)

    async def shown(words: str) -> str:
        """Return the text of the only answer once it has these words."""
        (answer,) = await until(lambda: slack.posted(IT, words), log=lambda: program.log)
        return str(answer)

    async with program.serving():
        program.drop(CHANNEL, FIRST, "boiler.pdf")
        for number in range(5):
            program.drop(CHANNEL, pdf(f"Canteen {number}\n\nLunch is served at noon."), f"{number}.pdf")
        await program.until_live(CHANNEL, 6)
        await slack.say(IT, f"<@{BOT}> how often is the boiler valve reset?")
        (answer,) = await slack.replies(IT)
        root = answer["thread_ts"]
        await slack.say(IT, f"<@{BOT}> subscribe to this page", thread=root)
        subscribed = WORDS.subscribed(page=1, document=WORDS.document_named(title="boiler.pdf"))
        await until(lambda: slack.posted(IT, subscribed), log=lambda: program.log)
        old = next(one["url"] for one in answer["blocks"][1]["elements"] if "url" in one)
        file = program.drop(CHANNEL, SECOND, "boiler.pdf")
        assert "[1]" in await shown("It says the same on page 2.")
        note = WORDS.page_moved(document=WORDS.document_named(title="boiler.pdf"), page=2)
        (told,) = await until(lambda: slack.posted(IT, note), log=lambda: program.log)
        assert told["thread_ts"] == root
        assert "Removed: “Boiler manual”" in str(told)
        assert len(await slack.replies(IT, 3)) == 3  # the answer, the subscription, and the notice
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("replies").first.click()
        await page.get_by_text("was updated on").wait_for()
        await page.screenshot(path=tmp_path / "replaced.png")
        await page.goto(old)
        bar = page.locator("nav.bar")
        await bar.get_by_text("It says the same on page 2.").wait_for()
        await page.screenshot(path=tmp_path / "old.png")
        await bar.get_by_role("button", name="Open this passage in the new version").click()
        await page.locator("#hit").wait_for()
        assert await page.locator(".number b").first.inner_text() == "2"
        await page.screenshot(path=tmp_path / "new.png")
        file.unlink()
    async with program.serving():
        assert "It says the same" not in await shown("was removed from this channel")
        assert len(await slack.replies(IT, 3)) == 3
