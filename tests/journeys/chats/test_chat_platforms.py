"""The whole program behind a real Slack server and Microsoft's Agents Playground."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from engines.playground import OPERATIONS, PERSONAL, TENANT, Playground, StartPlayground
from engines.slack import (
    BOT,
    HR,
    IT,
    TEAM,
    SlackDouble,
    StartSlack,
    slack_settings,
)
from fakes.core import WORDS
from fakes.model_server import STREAM_HEAD, byte_server, event
from harness.forks import Fork
from harness.program import Program
from harness.waiting import until
from samples.paper import pdf

from bot.core.plaintext import MORE_TO_COME
from storage.models import ChannelKey, Platform

CANARY = "Zanzibarium"


async def read(url: str) -> tuple[int, str]:
    """Status and text behind a link."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.engine("slack")
async def test_a_question_in_slack_gets_an_answer_whose_button_opens_the_page(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Drop, mention, answer with a button, and the marked page behind it; the other channel has nothing."""
    slack = await start_slack("socket", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "socket")
    async with program.serving():
        channel = f"sl_{TEAM}_{IT}"
        program.drop(channel, sop)
        program.drop(f"sl_{TEAM}_{HR}", pdf(f"The secret project is called {CANARY}."))
        await program.until_live(channel, 1)
        await program.until_live(f"sl_{TEAM}_{HR}", 1)
        root = await slack.say(IT, f"<@{BOT}> when do backups run?")
        (reply,) = await slack.replies(IT)
        (button,) = [
            element
            for block in reply["blocks"]
            if block["type"] == "actions"
            for element in block["elements"]
            if "url" in element
        ]
        assert button["text"]["text"].startswith("[1] p. 1 · ")
        assert "Page 1 of" in reply["text"]
        status, page = await read(button["url"])
        assert (status, "2:00 AM" in page) == (200, True)
        await slack.say(IT, f"<@{BOT}> what is the secret project called?")
        replies = await slack.replies(IT, 2)
        assert CANARY not in json.dumps(replies)
        await slack.say(HR, f"<@{BOT}> what is the secret project called?")
        assert CANARY in json.dumps(await slack.replies(HR))
        await slack.say(IT, f"<@{BOT}> how often are they tested?", thread=root)
        leaning = WORDS.understood(question="how often are they tested (backups run)?")
        assert leaning in json.dumps(await slack.replies(IT, 3))
    assert CANARY not in program.log
    assert "backups" not in program.log


@pytest.mark.engine("slack")
async def test_a_question_that_came_before_a_crash_is_answered_after_it(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Killed with the question in its inbox, the next start answers it, once."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    channel = f"sl_{TEAM}_{IT}"
    program.drop(channel, sop)
    async with program.serving() as process:
        await program.until_live(channel, 1)
        await slack.say(IT, f"<@{BOT}> when do backups run?")
        await asyncio.to_thread(kill_once_it_is_kept, program, process)
    async with program.serving():
        await until_said(slack, "2:00 AM")
        await asyncio.sleep(1)
        posted = await slack.replies(IT)
    # A placeholder of the instant of the kill is found again by its metadata, which this double forgets.
    (answer,) = [message for message in posted if message.get("blocks")]
    assert "2:00 AM" in json.dumps(answer)


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_crash_amid_an_answer_that_is_being_shown_leaves_one_whole_answer(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Killed while half of it stands in the channel, the next start writes all of it in the same place."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    has_recovered = asyncio.Event()

    async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
        await writer.drain()
        await has_recovered.wait()
        writer.write(event(f", {claim('At 2 AM.')}]}}") + event(finish="stop"))
        await writer.drain()

    channel = f"sl_{TEAM}_{IT}"
    program.drop(channel, sop)
    async with byte_server(write) as model:
        program.environment = slack_settings(slack.api_url, "events") | {"OPENAI_BASE_URL": model}
        async with program.serving() as process:
            await program.until_live(channel, 1)
            await slack.say(IT, f"<@{BOT}> when do backups run?")
            await until_said(slack, "Daily.")
            process.kill()
            process.wait()
        (begun,) = await slack.replies(IT)
        assert "Daily." in json.dumps(begun)
        has_recovered.set()
        async with program.serving():
            await until_said(slack, "Daily. [1] At 2 AM. [1]")
            (answer,) = await slack.replies(IT)
    assert answer["ts"] == begun["ts"]
    assert MORE_TO_COME not in json.dumps(answer, ensure_ascii=False)


def claim(text: str) -> str:
    """A sentence of a model, with a quote that stands in the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


async def until_said(slack: SlackDouble, words: str) -> None:
    """Wait as long as a dead worker's question may stay its own, and a little longer."""

    async def is_said() -> bool:
        return words in json.dumps(await slack.messages(IT), ensure_ascii=False)

    await until(is_said)


def kill_once_it_is_kept(program: Program, process: Fork) -> None:
    """Kill ``serve`` as soon as the question is in its database."""
    with closing(sqlite3.connect(program.home / "footnote.db")) as database:
        while database.execute("SELECT count(*) FROM inbox").fetchone() == (0,):
            time.sleep(0.005)
    process.kill()
    process.wait()


@pytest.mark.engine("playground")
async def test_a_question_in_teams_gets_an_answer_whose_button_opens_the_page(
    program: Program, start_playground: StartPlayground, sop: Path
) -> None:
    """The same in a Teams channel, with native citations; the personal chat knows nothing of it."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    channel = ChannelKey(Platform.TEAMS, TENANT, OPERATIONS).tenant
    async with program.serving():
        program.drop(channel, sop)
        await program.until_live(channel, 1)
        await playground.say(OPERATIONS, "when do backups run?", mention=True)
        calls = await playground.answered()
        url = re.findall(rf"{program.url}/v/[\w-]+", json.dumps(calls))[0]
        status, page = await read(url)
        assert (status, "2:00 AM" in page) == (200, True)
        await playground.say(PERSONAL, "when do backups run?")
        assert "2:00 AM" not in json.dumps(await calls_of(playground, PERSONAL))


async def calls_of(playground: Playground, conversation: str) -> list[dict[str, Any]]:
    """What the bot said in one conversation, once it has said something final."""

    async def said() -> list[dict[str, Any]] | None:
        calls = [call for call in playground.calls() if conversation in unquote(call["request"]["url"])]
        return calls if any(call["request"]["body"]["type"] == "message" for call in calls) else None

    return await until(said)
