"""The message extension of the whole program, used in the Agents Playground in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines.playground import GENERAL, OPERATIONS, TENANT, Playground, StartPlayground
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser, Locator, Page
from samples.paper import pdf

from storage.models import ChannelKey, Platform

CANARY = "Zanzibarium"
CHANNELS = {GENERAL: "IT - General", OPERATIONS: "IT - Operations"}


async def until_welcomed(page: Page, playground: Playground) -> None:
    """Open the team, which installs the app there, and wait for its welcome and the personal chat's.

    The Playground closes a dialog when a message arrives.
    """
    await page.locator(f'[aria-label="{CHANNELS[GENERAL]}"]').click()

    async def is_welcomed() -> bool:
        return len(await playground.said("I’m Footnote") or ()) == 2

    await until(is_welcomed)


async def ask(page: Page, channel: str, question: str, seen: Path | None = None) -> None:
    """Open the extension in a channel's compose box and ask; ``seen``: path of a screenshot."""
    await page.locator(f'[aria-label="{CHANNELS[channel]}"]').click()
    await page.get_by_label("Trigger Message Extension App").last.click()
    await page.get_by_role("menuitem", name="Action Command").click()
    await page.get_by_role("button", name="Create").click()
    await page.get_by_label(WORDS.compose_question).fill(question)
    if seen:
        await page.screenshot(path=seen)
    await page.get_by_role("button", name=WORDS.compose_ask, exact=True).click()


async def until_shown(page: Page, wanted: Locator) -> None:
    """Wait for an answer; one that exceeds the Teams timeout has a button to fetch it again."""
    again = page.get_by_role("button", name=WORDS.compose_show, exact=True)
    for _ in range(10):
        await wanted.or_(again).first.wait_for()
        if await wanted.is_visible():
            return
        await again.click()
        await page.wait_for_timeout(500)
    await wanted.wait_for()


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_a_question_in_the_compose_box_is_answered_there(
    program: Program, start_playground: StartPlayground, sop: Path, browser: Browser, tmp_path: Path
) -> None:
    """Checked in the browser: the dialog, the answer's card in the box, and the sent message."""
    playground: Playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    operations, general = (ChannelKey(Platform("teams"), TENANT, one).tenant for one in (OPERATIONS, GENERAL))
    async with program.serving():
        program.drop(operations, sop)
        program.drop(general, pdf(f"The secret project is called {CANARY}."))
        await program.until_live(operations, 1)
        await program.until_live(general, 1)
        page = await playground.open(browser)
        await until_welcomed(page, playground)
        await ask(page, OPERATIONS, "when do backups run?", tmp_path / "dialog.png")
        opening = page.locator(f'button[title^="{program.url}/v/"]').filter(has_text="[1] p. 1 · SOP-IT-04")
        await until_shown(page, opening)
        assert await page.get_by_text("2:00 AM").count() == 1
        await page.screenshot(path=tmp_path / "card.png")
        await page.get_by_role("button", name="Post", exact=True).click()
        await page.get_by_text("Person 0").nth(2).wait_for()
        await page.screenshot(path=tmp_path / "sent.png")
        await ask(page, OPERATIONS, "what is the secret project called?")
        await until_shown(page, page.get_by_text(WORDS.not_found_in(1)).first)
        assert CANARY not in await page.inner_text("body")
        assert CANARY not in playground.recording.read_text()
        await ask(page, GENERAL, "what is the secret project called?")
        await until_shown(page, page.get_by_text(CANARY).first)
        await page.screenshot(path=tmp_path / "general.png")
    assert not await playground.said("2:00 AM"), "the bot posted what was asked privately"
