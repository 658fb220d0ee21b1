"""From an answer in Slack to its quotes: every number opens its own, and leads to the next."""

from __future__ import annotations

import re
from typing import Any

import pytest
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from harness.program import SAMPLES, Program
from playwright.async_api import Page

CHANNEL = f"sl_{TEAM}_{IT}"
# Position of the mark on the page, independent of scrolling.
DOWN = """() => ["#hit", ".paper img"].map(one => document.querySelector(one).getBoundingClientRect().top)
    .reduce((mark, picture) => mark - picture)"""


def source_buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the buttons that open a page."""
    return [one for block in message["blocks"] for one in block.get("elements", ()) if "url" in one]


@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_each_number_of_an_answer_opens_its_quote(
    program: Program, start_slack: StartSlack, page: Page
) -> None:
    """Covers ten quotes on two pages, with two buttons and ten links in the text.

    Also covers a comparison of two documents, where the quote after the first document's is in the other one.
    """
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url)
    async with program.serving():
        for sample in SAMPLES.glob("*.pdf"):
            program.drop(CHANNEL, sample)
        await program.until_live(CHANNEL, 2)

        await slack.say(IT, f"<@{BOT}> What is SOP-IT-04 about?")
        (outline,) = await slack.replies(IT)
        links = dict(re.findall(r"<(http[^|>]+)\|\[(\d+)\]>", str(outline["blocks"])))
        numbers = {int(number): url for url, number in links.items()}
        labels = [one["text"]["text"] for one in source_buttons(outline)]
        assert sorted(numbers) == list(range(1, 11))
        assert all(re.match(r"[\[\]\d]+ p\. [12] · SOP-IT-04 Back", label) for label in labels), labels
        on_page = [[int(n) for n in re.findall(r"\[(\d+)\]", label)] for label in labels]
        assert [number for one in on_page for number in one] == list(range(1, 11))

        await page.goto(numbers[3], wait_until="load")
        assert "[3], 3 of 10" in " ".join((await page.inner_text(".quotes")).split())
        marked = await page.locator(".mark-number").all_text_contents()
        assert sorted(int(number) for text in marked for number in text.split()) == on_page[0]
        upper = await page.evaluate(DOWN)
        assert await page.locator(".mark:not(.other)").count() == 1
        await page.keyboard.press("n")
        await page.wait_for_selector(".quote >> text=3. Backup schedule")
        assert await page.evaluate(DOWN) > upper

        await slack.say(IT, f"<@{BOT}> Compare SOP-IT-04 and SOP-HR-02 on who approves")
        compared = (await slack.replies(IT, 2))[-1]
        first, second = source_buttons(compared)
        assert re.match(r"\[1\] p\. \d · SOP-IT-", first["text"]["text"])
        assert re.match(r"\[2\] p\. \d · SOP-HR-", second["text"]["text"])
        await page.goto(first["url"], wait_until="load")
        await page.click("text=Next quote")
        await page.wait_for_selector("h1 >> text=SOP-HR-02 Remote Work Requests")
        assert await page.locator("#hit").count() == 1
        await page.keyboard.press("p")
        await page.wait_for_selector("h1 >> text=SOP-IT-04 Backup and Restore")
