"""The whole program with a real Slack server and Microsoft's Agents Playground."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from engines.playground import BOT_ID, GENERAL, OPERATIONS, PERSONAL, TENANT, Playground, StartPlayground
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
from harness.program import Program
from harness.waiting import until
from samples.paper import faq_pdf, pdf

from bot.core.plaintext import MORE_TO_COME
from storage.models import ChannelKey, Platform

CANARY = "Zanzibarium"


async def read(url: str) -> tuple[int, str]:
    """Return status and text of a link."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.engine("slack")
async def test_a_slack_answer_links_to_the_cited_page(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Drop, mention, answer with a button, and the marked page; the other channel finds no answer.

    A follow-up in our thread needs no mention; messages that mention another user, or are posted elsewhere,
    get no answer.
    """
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
        (button,) = [one for one in reply["blocks"][-1]["elements"] if "url" in one]
        assert button["text"]["text"].startswith("[1] p. 1 · ")
        assert "Page 1 of" in reply["text"]
        status, page = await read(button["url"])
        assert (status, "2:00 AM" in page) == (200, True)
        await slack.say(IT, f"<@{BOT}> what is the secret project called?")
        replies = await slack.replies(IT, 2)
        assert CANARY not in json.dumps(replies)
        await slack.say(HR, f"<@{BOT}> what is the secret project called?")
        assert CANARY in json.dumps(await slack.replies(HR))
        other = await slack.say(IT, "has anybody seen my cup?")
        await slack.say(IT, "which cup?", thread=other)
        await slack.say(IT, "<@U0ALICE01> can you check that?", thread=root)
        await slack.say(IT, "how often are they tested?", thread=root)
        leaning = (await slack.replies(IT, 3))[2]
        assert WORDS.understood(question="how often are they tested (backups run)?") in json.dumps(leaning)
        assert leaning["thread_ts"] == root
        await slack.say(IT, f"<@{BOT}> who is told?", thread=root)  # earlier messages are processed by then
        assert len(await slack.replies(IT, 4)) == 4
    assert CANARY not in program.log
    assert "backups" not in program.log


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_crash_while_streaming_leaves_one_complete_answer(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Killed with half of it in the channel, the next start completes it in the same message."""
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
        program.environment = slack_settings(slack.api_url, "events") | {
            "OPENAI_BASE_URL": model,
            "FOOTNOTE_VERIFY": "words",
        }
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
            await until_said(slack, "Daily. At 2 AM. [1]")
            (answer,) = await slack.replies(IT)
    assert answer["ts"] == begun["ts"]
    assert MORE_TO_COME not in answer["text"]


def claim(text: str) -> str:
    """Return a model's claim with a quote from the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


async def until_said(slack: SlackDouble, words: str) -> None:
    """Wait for longer than the lease of a dead worker's question."""

    async def is_said() -> bool:
        return words in json.dumps(await slack.messages(IT), ensure_ascii=False)

    await until(is_said)


@pytest.mark.engine("playground")
async def test_teams_channels_answer_from_their_own_documents(
    program: Program, start_playground: StartPlayground, sop: Path
) -> None:
    """An answer has native citations whose link opens the page; the personal chat finds no answer.

    Each thread is a separate conversation. When added to a team, the bot posts one card; a click in it is
    answered, one in another channel is not.
    """
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    operations, general = (ChannelKey(Platform("teams"), TENANT, one).tenant for one in (OPERATIONS, GENERAL))
    async with program.serving():
        program.drop(operations, sop)
        program.drop(general, faq_pdf())
        await program.until_live(operations, 1)
        await program.until_live(general, 1)
        thread = await playground.say(OPERATIONS, "when do backups run?", mention=True)
        calls = await playground.answered()
        url = re.findall(rf"{program.url}/v/[\w-]+", json.dumps(calls))[0]
        status, page = await read(url)
        assert (status, "2:00 AM" in page) == (200, True)
        await playground.say(PERSONAL, "when do backups run?")
        assert "2:00 AM" not in json.dumps(await calls_of(playground, PERSONAL))
        leaning = WORDS.understood(question="how often are they tested (backups run)?")
        await playground.say(OPERATIONS, "how often are they tested?", mention=True)
        await playground.answered(2)
        assert not await playground.said(leaning)
        await playground.say(thread, "how often are they tested?", mention=True)
        await until(lambda: playground.said(leaning), log=lambda: program.log)
        await playground.answered(3)

        await playground.install(GENERAL)
        (card,) = await until(lambda: cards(playground, "m Footnote"), log=lambda: program.log)
        assert "I know 1 document in this channel" in card
        submits = [one["data"] for one in actions(json.loads(card)) if one["type"] == "Action.Submit"]
        assert 1 <= len(submits) <= 3
        before = len(playground.calls())
        for place in (OPERATIONS, GENERAL):
            await playground.send(click(submits[0], place, playground.url))
        new = await until(lambda: answered_since(playground, before), log=lambda: program.log)
        assert submits[0]["asks"] in json.dumps(new, ensure_ascii=False)
        assert not [call for call in new if OPERATIONS in unquote(call["request"]["url"])]


async def answered_since(playground: Playground, before: int) -> list[dict[str, Any]] | None:
    """Return the calls after the first `before`, once an answer with citations is among them."""
    new = playground.calls()[before:]
    return new if '"citation"' in json.dumps(new) else None


async def calls_of(playground: Playground, conversation: str) -> list[dict[str, Any]]:
    """Return the bot's calls in a conversation, once one of them is final."""

    async def said() -> list[dict[str, Any]] | None:
        calls = [call for call in playground.calls() if conversation in unquote(call["request"]["url"])]
        return calls if any(call["request"]["body"]["type"] == "message" for call in calls) else None

    return await until(said)


def click(data: dict[str, Any], channel: str, url: str) -> dict[str, Any]:
    """Return the activity that Teams sends when a question is clicked."""
    return {
        "type": "message",
        "id": f"click-{channel}",
        "value": data,
        "serviceUrl": f"{url}/_connector",
        "channelId": "msteams",
        "from": {"id": "user-id-0"},
        "recipient": {"id": BOT_ID},
        "conversation": {"id": channel, "conversationType": "channel", "isGroup": True, "tenantId": TENANT},
        "channelData": {"tenant": {"id": TENANT}, "channel": {"id": channel}},
    }


def actions(value: Any) -> list[dict[str, Any]]:
    """Return every action of a card, nested ones included."""
    if isinstance(value, list):
        return [found for one in value for found in actions(one)]
    if not isinstance(value, dict):
        return []
    own = [value] if str(value.get("type")).startswith("Action.") else []
    return own + [found for one in value.values() for found in actions(one)]


async def cards(playground: Playground, words: str) -> list[str] | None:
    """Return the posted cards with these words, as JSON."""
    posted = [json.dumps(call["request"]["body"]) for call in playground.calls()]
    return [one for one in posted if '"attachments"' in one and words in one] or None
