"""Figures in the answers of both chats: requested, rendered, posted and checked in a browser."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from engines.playground import PERSONAL, TENANT, Playground, StartPlayground
from engines.slack import ALICE, BOT, BOT_TOKEN, IT, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.core import WORDS
from harness.program import SAMPLES, Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.illustrated import illustrated_pdf

from storage.models import ChannelKey, Platform

CAPTION = "Figure 1. Emissions of carbon dioxide by year"
QUESTION = "Show me the emissions chart"
TABLE_QUESTION = "Show me the table of backup schedules"
TABLE = "Table 1. What is backed up, and for how long it is kept"
# True once `most` images were loaded and rendered.
SHOWN = "most => [...document.images].filter(one => one.complete && one.naturalWidth > 300).length >= most"


def pictures(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the image blocks of a message."""
    return [block for block in message.get("blocks", ()) if block["type"] == "image"]


async def get(url: str, **headers: str) -> tuple[int, str, bytes]:
    """Return status, media type and body."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, response.content_type, await response.read()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_slack_shows_the_figure_in_the_answer(
    program: Program, start_slack: StartSlack, tmp_path: Path, browser: Browser
) -> None:
    """A single message with an image between text and sources; a private answer uploads no file."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.rung = "full"
    program.environment = slack_settings(slack.api_url, FOOTNOTE_LAYOUT="true")
    async with program.serving():
        program.drop(f"sl_{TEAM}_{IT}", illustrated_pdf(tmp_path))
        await program.until_live(f"sl_{TEAM}_{IT}", 1, "full")
        private = {"channel": IT, "user": ALICE, "command": "/footnote", "text": QUESTION}
        await slack.post("/_control/command", **private)
        await until(lambda: slack.posted(IT, CAPTION), log=lambda: program.log)
        assert await uploads(slack) == 0

        root = await slack.say(IT, f"<@{BOT}> {QUESTION}")
        answer = await until(lambda: illustrated(slack, root), log=lambda: program.log)
        kinds = [block["type"] for block in answer["blocks"]]
        assert kinds[:3] == ["section", "image", "actions"]
        (picture,) = pictures(answer)
        assert picture["alt_text"] == CAPTION
        assert picture["title"]["text"] == WORDS.figure_label(CAPTION, 1)
        info = await slack.post(f"/api/files.info?file={picture['slack_file']['id']}")
        file = info["file"]
        assert not file.get("channels")
        status, _, data = await get(file["url_private"], Authorization=f"Bearer {BOT_TOKEN}")
        assert (status, data[:8]) == (200, b"\x89PNG\r\n\x1a\n")
        own = [one for one in await slack.messages(IT) if one.get("thread_ts") == root]
        assert len([one for one in own if one.get("user") == BOT]) == 1
        assert await uploads(slack) == 1

        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_text("1 reply").click()
        image = page.get_by_alt_text(CAPTION)
        await image.wait_for()  # this server does not render uploaded files in blocks: the bytes are inlined
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        await image.evaluate("(one, source) => { one.src = source }", source)
        await page.wait_for_function(SHOWN, arg=1)
        await page.screenshot(path=tmp_path / "slack-figure.png")


async def uploads(slack: SlackDouble) -> int:
    """Return the number of completed uploads."""
    return json.dumps(await slack.log()).count("files.completeUploadExternal")


async def illustrated(slack: SlackDouble, root: str) -> dict[str, Any] | None:
    """Return the answer in a thread once it has its image."""
    posted = [one for one in await slack.messages(IT) if one.get("thread_ts") == root]
    return next((one for one in posted if pictures(one)), None)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_teams_fetches_figures_and_tables_by_signed_links(
    program: Program, start_playground: StartPlayground, tmp_path: Path, browser: Browser
) -> None:
    """The card's image needs no sign-in; a forged link shows no image."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.rung = "full"
    program.environment = {
        "FOOTNOTE_TEAMS_DEVELOPMENT": "true",
        "FOOTNOTE_RECEIPTS": "off",
        "FOOTNOTE_LAYOUT": "true",
    }
    library = ChannelKey(Platform("teams"), TENANT, PERSONAL).tenant
    async with program.serving():
        program.drop(library, illustrated_pdf(tmp_path))
        program.drop(library, SAMPLES / "SOP-IT-04-Backup-and-Restore.pdf")
        await program.until_live(library, 2, "full")
        page = await playground.open(browser, height=1200)
        for place, (question, caption) in enumerate(((QUESTION, CAPTION), (TABLE_QUESTION, TABLE)), start=1):
            await playground.write(page, question)
            shown = await until(lambda most=place: card_pictures(playground, most), log=lambda: program.log)
            picture = shown[-1]
            assert picture["altText"] == caption
            url = picture["url"]
            status, kind, data = await get(url)
            assert (status, kind, data[:4]) == (200, "image/png", b"\x89PNG")
            assert len(data) < 1024 * 1024
            changed = url[:-1] + ("A" if url[-1] != "A" else "B")
            assert [(await get(one))[0] for one in (changed, url.replace("/f/", "/v/"))] == [404, 404]
            await page.wait_for_function(SHOWN, arg=place)
            await page.wait_for_timeout(500)  # the chat scrolls down
            await page.screenshot(path=tmp_path / f"teams-{place}.png")


async def card_pictures(playground: Playground, most: int) -> list[dict[str, Any]] | None:
    """Return the images of all cards once there are `most`."""
    bodies = [call["request"]["body"] for call in playground.calls()]
    cards = [one["content"] for body in bodies for one in body.get("attachments") or ()]
    images = [block for card in cards for block in card["body"] if block["type"] == "Image"]
    return images if len(images) >= most else None
