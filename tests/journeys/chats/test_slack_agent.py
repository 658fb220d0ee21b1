"""Footnote as an agent in Slack: streaming and stopping answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import ALICE, BOT, IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.agent_slack import AgentSlack, agent_slack
from fakes.core import WORDS
from fakes.model_server import STREAM_HEAD, byte_server, event
from fakes.slack_events import Signed, envelope
from harness.program import Program
from harness.waiting import PATIENCE, until
from playwright.async_api import Browser

CHANNEL = f"sl_{TEAM}_{IT}"


STOPPED, LAST = "When do backups run?", "how often do backups run?"


def claim(text: str) -> str:
    """Return a model's claim with a quote from the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


async def all_at_rest(agent: AgentSlack, count: int) -> bool:
    """True if `count` sessions were started and none is working."""
    return list(agent.statuses.values()) == ["active"] * count


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_a_model_answer_is_streamed_into_its_final_message(
    program: Program, start_slack: StartSlack, sop: Path, browser: Browser
) -> None:
    """Streamed sentence by sentence; the final text, sources and feedback are those of any answer.

    The stop button ends the next answer, which says so: the model's connection is closed, the session is
    active again, and the next question is answered.
    """
    slack = await start_slack("events", f"{program.url}/slack/events")
    seen, hung_up = asyncio.Event(), asyncio.Event()

    async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
        await writer.drain()
        if STOPPED.encode() in request and LAST.encode() not in request:
            with contextlib.suppress(ConnectionError):
                while not writer.is_closing():
                    writer.write(event(" "))
                    await writer.drain()
                    await asyncio.sleep(0.05)
            hung_up.set()
            return
        await seen.wait()
        writer.write(event(f", {claim('At 2 AM.')}]}}") + event(finish="stop"))
        await writer.drain()

    program.drop(CHANNEL, sop)
    async with byte_server(write) as model, agent_slack(slack) as agent:
        program.environment = slack_settings(
            agent.api_url, "events", OPENAI_BASE_URL=model, FOOTNOTE_VERIFY="words"
        )
        async with program.serving():
            await program.until_live(CHANNEL, 1)
            root = await slack.say(IT, f"<@{BOT}> when do backups run?")
            (begun,) = await until(lambda: slack.posted(IT, "Daily."), log=lambda: program.log)
            assert begun["thread_ts"] == root
            assert set(agent.streams) == {begun["ts"]}
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            await page.goto(slack.url)
            await page.get_by_text("1 reply").click()
            await page.get_by_text("Daily.").wait_for()
            await page.screenshot(path=program.home / "streaming.png")
            assert agent.statuses == {(IT, root): "processing"}
            seen.set()
            (answer,) = await until(lambda: slack.posted(IT, "Daily. At 2 AM. [1]"), log=lambda: program.log)
            await page.get_by_text("At 2 AM.").wait_for()
            await page.screenshot(path=program.home / "streamed.png")
            check_streamed(agent, begun, answer)
            assert len(await own(slack)) == 1
            await until(lambda: all_at_rest(agent, 1), log=lambda: str(agent.statuses))
            assert agent.titles == {(IT, root): "when do backups run?"}
            await press_stop(program, slack, agent, hung_up)


def check_streamed(agent: AgentSlack, begun: dict[str, Any], answer: dict[str, Any]) -> None:
    """Check that the stream has become the answer."""
    assert (answer["ts"], answer["thread_ts"]) == (begun["ts"], begun["thread_ts"])
    assert not agent.streams
    kinds = [block["type"] for block in answer["blocks"]]
    assert kinds == ["section", "context", "actions"]
    (started,) = agent.called("chat.startStream")
    assert (started["recipient_user_id"], started["recipient_team_id"]) == (ALICE, TEAM)


async def press_stop(program: Program, slack: SlackDouble, agent: AgentSlack, hung_up: asyncio.Event) -> None:
    """Ask, stop the answer while it streams, and ask again in its thread."""
    signed = Signed(slack.session, program.url, SECRET)
    root = await slack.say(IT, f"<@{BOT}> {STOPPED}")
    begun = await until(lambda: streamed_in(slack, root), log=lambda: program.log)
    pressed = envelope("EvS1", user=ALICE, **agent.press_stop(IT, root))
    assert await signed.send(pressed) == 200
    (stopped,) = await until(lambda: slack.posted(IT, WORDS.stopped), log=lambda: program.log)
    await asyncio.wait_for(hung_up.wait(), PATIENCE)
    await until(lambda: all_at_rest(agent, 2), log=lambda: str(agent.statuses))
    assert stopped["ts"] == begun["ts"]
    assert "Daily." not in json.dumps(stopped)
    assert await signed.send(pressed) == 200
    await slack.say(IT, LAST, root)
    answer = await until(lambda: streamed_in(slack, root, "At 2 AM. [1]"), log=lambda: program.log)
    assert answer["ts"] != begun["ts"]
    assert len(await own(slack)) == 3


async def streamed_in(slack: SlackDouble, thread: str, words: str = "Daily.") -> dict[str, Any] | None:
    """Return the bot's message in a thread with these words."""
    said = await slack.posted(IT, words) or []
    return next((one for one in said if one.get("thread_ts") == thread), None)


async def own(slack: SlackDouble) -> list[dict[str, Any]]:
    """Return all that the bot posted in the channel."""
    return [message for message in await slack.messages(IT) if message.get("user") == BOT]
