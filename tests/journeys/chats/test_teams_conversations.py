"""Every kind of Teams conversation with the whole program: personal chat, group chat, a channel's threads."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from engines.playground import GROUP, PERSONAL, TENANT, Playground, StartPlayground
from fakes.core import WORDS
from fakes.model_server import STREAM_HEAD, byte_server, event
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import faq_pdf

from bot.chat.notifications.notification_wording import TRY_ASKING
from storage.models import ChannelKey, Platform

LIBRARY = "library/policies"
DEVELOPMENT = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
LEANING = WORDS.understood(question="how often are they tested (backups run)?")


def name_library(program: Program, document: Path) -> None:
    """Configure a library with one document for direct chats."""
    place = program.home / "policies"
    place.mkdir(parents=True)
    (place / document.name).write_bytes(document.read_bytes())
    library = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{place}"\n'
    (program.home / "folders.toml").write_text(f'{library}[direct_chats]\nlibrary = "policies"\n')


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_a_personal_chat_is_welcomed_with_sample_questions(
    program: Program, start_playground: StartPlayground, browser: Browser, tmp_path: Path
) -> None:
    """Checked in the browser: the welcome with suggestions, a click on one, its answer, and a follow-up."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = DEVELOPMENT
    (tmp_path / "backups.pdf").write_bytes(faq_pdf())
    name_library(program, tmp_path / "backups.pdf")
    async with program.serving():
        await program.until_live(LIBRARY, 1)
        page = await playground.open(browser)
        await page.get_by_text("I’m Footnote").first.wait_for()
        await page.get_by_text(TRY_ASKING).first.wait_for()
        chips = page.locator("button").filter(has_text="?")
        ends = [one.rpartition("…")[2] for one in await chips.all_inner_texts()]
        assert 1 <= len(ends) <= 3
        assert len({*ends}) == len(ends)
        await page.screenshot(path=tmp_path / "welcome.png")
        await chips.first.click()
        await page.locator("a.fai-Citation").first.wait_for()
        asked = page.get_by_text(ends[0])
        assert await asked.count() >= 2
        await playground.say(PERSONAL, "when do backups run?")
        await playground.answered(2)
        await playground.say(PERSONAL, "how often are they tested?")
        await until(lambda: playground.said(LEANING), log=lambda: program.log)
        await page.screenshot(path=tmp_path / "answer.png")


@pytest.mark.long
@pytest.mark.engine("playground")
async def test_a_group_chat_is_one_conversation(
    program: Program, start_playground: StartPlayground, sop: Path
) -> None:
    """A follow-up refers to the previous question without a thread."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = DEVELOPMENT
    channel = ChannelKey(Platform("teams"), TENANT, GROUP).tenant
    async with program.serving():
        program.drop(channel, sop)
        await program.until_live(channel, 1)
        thread = await playground.say(GROUP, "when do backups run?", mention=True)
        await until(lambda: playground.said("2:00 AM"), log=lambda: program.log)
        await playground.say(thread, "how often are they tested?", mention=True)
        await until(lambda: playground.said(LEANING), log=lambda: program.log)


def claim(text: str) -> str:
    """Return a model's claim with a quote from the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


def streamed(playground: Playground, kind: str) -> list[dict[str, Any]]:
    """Return the bot's activities of this stream type."""
    sent = [call["request"]["body"] for call in playground.calls()]
    return [one for one in sent for info in one.get("entities", ()) if info.get("streamType") == kind]


@pytest.mark.long
@pytest.mark.engine("playground")
@pytest.mark.engine("chromium")
async def test_a_crash_while_streaming_in_teams_leaves_one_answer(
    program: Program, start_playground: StartPlayground, sop: Path, browser: Browser, tmp_path: Path
) -> None:
    """Killed halfway, the next start completes the stream."""
    playground = await start_playground(f"{program.url}/api/messages")
    name_library(program, sop)
    has_recovered = asyncio.Event()

    async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
        await writer.drain()
        await has_recovered.wait()
        writer.write(event(f", {claim('At 2 AM.')}]}}") + event(finish="stop"))
        await writer.drain()

    async with byte_server(write) as model:
        program.environment = DEVELOPMENT | {"OPENAI_BASE_URL": model, "FOOTNOTE_VERIFY": "words"}
        async with program.serving() as process:
            await program.until_live(LIBRARY, 1)
            page = await playground.open(browser)
            await playground.say(PERSONAL, "when do backups run?")
            await page.get_by_text("Daily.").first.wait_for()
            await page.screenshot(path=tmp_path / "growing.png")
            process.kill()
            process.wait()
        has_recovered.set()
        async with program.serving():
            await until(lambda: playground.said("At 2 AM."), log=lambda: program.log)
            await playground.answered(1)
            await page.locator("a.fai-Citation").first.wait_for()
            # The Playground shows text and card of one message apart, each with thumbs.
            await page.get_by_role("button", name="Like", exact=True).first.wait_for()
            await page.screenshot(path=tmp_path / "whole.png")
    begun, (shown, *_), (ended,) = (
        streamed(playground, kind) for kind in ("informative", "streaming", "final")
    )
    assert [one["text"] for one in begun] == [WORDS.searching]
    assert shown["text"] == "Daily."
    assert ended["text"].startswith(shown["text"])
    assert len(await playground.said('"citation"') or ()) == 1
