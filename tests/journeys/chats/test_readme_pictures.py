"""Screenshots of answers in both chats and of a cited page for README.md; `make pictures` updates them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from engines.playground import PERSONAL, TENANT, StartPlayground
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from harness.program import SAMPLES, Program
from playwright.async_api import Browser, FloatRect, Locator, Page

from storage.models import ChannelKey, Platform

SLACK_QUESTION, SLACK_WORDS = "How is a backup checked every day?", "form IT-04-A"
TEAMS_QUESTION, TEAMS_WORDS = "Who tests the backups, and how often?", "Once in every quarter"
MAX_BYTES = 150_000
# Pixels around the elements.
MARGIN = 4
# Device pixels per CSS pixel.
SHARPNESS = 1.5
WIDE_THREAD = """() => { document.querySelector(".thread-pane").style.width = "520px" }"""


async def picture(page: Page, shown: Sequence[Locator], file: Path) -> None:
    """Save a screenshot of these elements, and copy it to the folder `PICTURES` if set."""
    boxes = [box for one in shown if (box := await one.bounding_box())]
    left, top = min(one["x"] for one in boxes), min(one["y"] for one in boxes)
    right = max(one["x"] + one["width"] for one in boxes)
    bottom = max(one["y"] + one["height"] for one in boxes)
    height = page.viewport_size["height"] if page.viewport_size else 0
    assert len(boxes) == len(shown)
    assert bottom + MARGIN < height, "it does not fit into the window"
    size = (right - left + 2 * MARGIN, bottom - top + 2 * MARGIN)
    clip: FloatRect = {"x": left - MARGIN, "y": top - MARGIN, "width": size[0], "height": size[1]}
    await page.screenshot(path=file, clip=clip)
    keep(file)


def keep(file: Path) -> None:
    """Check that a screenshot is small enough for the README, and copy it on demand."""
    assert file.stat().st_size < MAX_BYTES
    if kept := os.environ.get("PICTURES"):
        shutil.copy(file, kept)


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_an_answer_in_slack(
    program: Program, start_slack: StartSlack, tmp_path: Path, browser: Browser
) -> None:
    """A thread: the question, the steps listed in the document, and the button of their page."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.rung = "full"
    program.environment = slack_settings(slack.api_url)
    async with program.serving():
        for sample in SAMPLES.glob("*.pdf"):
            program.drop(f"sl_{TEAM}_{IT}", sample)
        await program.until_live(f"sl_{TEAM}_{IT}", 2, "full")
        await slack.say(IT, f"<@{BOT}> {SLACK_QUESTION}")
        await slack.replies(IT)
        window = {"width": 1280, "height": 1000}
        page = await browser.new_page(viewport=window, device_scale_factor=SHARPNESS)  # type: ignore[arg-type]
        await page.goto(slack.url)
        await page.get_by_text("1 reply").click()
        await page.get_by_text(SLACK_WORDS).last.wait_for()
        await page.evaluate(WIDE_THREAD)
        messages = page.locator(".thread-body .msg")
        await picture(page, [messages.nth(0), messages.nth(1)], tmp_path / "slack.png")


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_an_answer_in_teams(
    program: Program, start_playground: StartPlayground, tmp_path: Path, browser: Browser
) -> None:
    """A personal chat: the question, and the answer with its native citation and source."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.rung = "full"
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    chat = ChannelKey(Platform("teams"), TENANT, PERSONAL).tenant
    async with program.serving():
        for sample in SAMPLES.glob("*.pdf"):
            program.drop(chat, sample)
        await program.until_live(chat, 2, "full")
        page = await playground.open(browser, height=1400, scale=SHARPNESS)
        await playground.write(page, TEAMS_QUESTION)
        await page.get_by_text(TEAMS_WORDS).last.wait_for()
        await playground.answered()
        await page.wait_for_timeout(1500)  # the welcome follows, and the chat scrolls
        beside = page.locator(".fai-OutputCard").first.locator("xpath=..")  # with its avatar
        shown = [page.get_by_text(TEAMS_QUESTION).first, beside]
        await picture(page, shown, tmp_path / "teams.png")


@pytest.mark.long
@pytest.mark.engine("chromium")
async def test_the_page_of_a_source(program: Program, sop: Path, tmp_path: Path, browser: Browser) -> None:
    """The quoted sentence is marked on its page, below the toolbar."""
    async with program.serving():
        program.drop("it", sop)
        await program.until_live("it", 1)
        answered = json.loads(await program.ask_console("it", "When do backups run?"))
        page = await browser.new_page(viewport={"width": 900, "height": 500})
        await page.goto(f"{program.url}{answered['citations'][0]['view']}")
        await page.wait_for_function("() => document.querySelector('.paper img').complete")
        await page.locator("#hit").scroll_into_view_if_needed()
        await page.screenshot(path=tmp_path / "viewer.png")
        keep(tmp_path / "viewer.png")
