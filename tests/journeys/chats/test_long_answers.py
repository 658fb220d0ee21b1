"""An answer with twelve cited pages in a real Slack server: all sources open, until it is erased."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from fakes.core import WORDS
from fakes.model_server import byte_server, completion, response
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import pdf

CHANNEL = f"sl_{TEAM}_{IT}"
DEPOTS = (
    "Alder",
    "Birch",
    "Cedar",
    "Fir",
    "Hazel",
    "Larch",
    "Maple",
    "Oak",
    "Pine",
    "Rowan",
    "Spruce",
    "Willow",
)
QUESTION = "After how many days is the fire extinguisher of each depot inspected?"
SENTENCE = "The fire extinguisher of the {} depot is inspected after {} days."
_PASSAGE = re.compile(r"<passage (\d+) .*?</passage", re.DOTALL)
_INSPECTED = re.compile(SENTENCE.format(r"\w+", r"\d+"))


async def write_all(request: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer as a model that repeats each passage verbatim."""
    prompt = json.loads(request)["messages"][-1]["content"]
    found = [
        (int(one[1]), said[0]) for one in _PASSAGE.finditer(prompt) if (said := _INSPECTED.search(one[0]))
    ]
    claims = [{"text": said, "quotes": [{"passage": number, "quote": said}]} for number, said in found]
    writer.write(response(completion(json.dumps({"sufficient": True, "claims": claims}))))
    await writer.drain()


def controls_of(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a block's buttons and menus."""
    beside = [block["accessory"]] if "accessory" in block else []
    return beside + list(block.get("elements", ()))


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_twelve_sources_are_reachable_until_erased(
    program: Program, start_slack: StartSlack, browser: Browser, tmp_path: Path
) -> None:
    """Five buttons and a menu for the other seven pages, a link per number; after erasure all are gone."""
    for at in range(0, 12, 4):
        pages = [
            SENTENCE.format(name, 30 + number) for number, name in enumerate(DEPOTS[at : at + 4], start=at)
        ]
        program.drop(CHANNEL, pdf(*pages), f"Depots-{at // 4 + 1}.pdf")
    slack = await start_slack("events", f"{program.url}/slack/events")
    async with byte_server(write_all) as model:
        program.environment = slack_settings(
            slack.api_url,
            "events",
            OPENAI_BASE_URL=model,
            FOOTNOTE_VERIFY="words",
            FOOTNOTE_PASSAGES_READ="12",
        )
        async with program.serving():
            await program.until_live(CHANNEL, 3)
            await slack.say(IT, f"<@{BOT}> {QUESTION}")
            (answer,) = await until(lambda: slack.posted(IT, "2 more sources"), log=lambda: program.log)
            page = await browser.new_page(viewport={"width": 1280, "height": 1400})
            await page.goto(slack.url)
            await page.get_by_text("1 reply").click()
            await page.get_by_text("after 41 days").first.wait_for()
            await page.screenshot(path=tmp_path / "twelve.png")
            controls = [one for block in answer["blocks"] for one in controls_of(block)]
            buttons = [one for one in controls if "/v/" in str(one.get("url"))]
            options = [option for one in controls for option in one.get("options", ())]
            numbers = re.findall(r"\[(\d+)\]", "".join(one["text"]["text"] for one in buttons + options))
            assert sorted(map(int, numbers)) == list(range(1, 13))
            assert len(buttons) == 5
            opened = set(re.findall(r"<(http[^|>]+/v/[^|>]+)\|\[\d+\]>", json.dumps(answer["blocks"])))
            assert len(opened) == 12
            for url in opened:
                async with slack.session.get(url) as shown:
                    assert shown.status == 200
            (program.home / "inbox" / CHANNEL).rename(tmp_path / "taken out")
            erased = await asyncio.to_thread(program.run, "erase", "--channel", CHANNEL, "--yes")
            assert erased.returncode == 0, erased.stderr
            await until(lambda: slack.posted(IT, WORDS.answer_removed), log=lambda: program.log)
            await page.get_by_text(WORDS.answer_removed).first.wait_for()
            await page.screenshot(path=tmp_path / "removed.png")
            assert not await slack.posted(IT, "after 30 days")
            for url in opened:
                async with slack.session.get(url) as shown:
                    assert shown.status in {404, 410}
