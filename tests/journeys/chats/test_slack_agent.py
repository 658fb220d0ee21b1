"""Footnote as an agent in Slack: prompts and sessions of a direct chat, and answers that are streamed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import ALICE, BOT, HR, IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.agent_slack import AgentSlack, agent_slack
from fakes.core import WORDS
from fakes.model_server import STREAM_HEAD, byte_server, event
from fakes.slack_events import Signed, envelope
from harness.program import Program
from harness.waiting import PATIENCE, until
from playwright.async_api import Browser

from bot.core.notifications.notification_wording import ASK_HELP

CHANNEL = f"sl_{TEAM}_{IT}"


def claim(text: str) -> str:
    """A sentence of a model, with a quote that stands in the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


@pytest.mark.engine("slack")
async def test_a_direct_chat_has_prompts_and_sessions_with_titles(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Prompts when its tab is opened; a session from each question to its answer, which is named after it; a
    reply below an answer leans on that one, and is answered there."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    signed = Signed(slack.session, program.url, SECRET)
    library = program.home / "policies"
    library.mkdir(parents=True)
    (library / sop.name).write_bytes(sop.read_bytes())
    text = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{library}"\n'
    (program.home / "folders.toml").write_text(f'{text}[direct_chats]\nlibrary = "policies"\n')
    async with agent_slack(slack) as agent:
        program.environment = slack_settings(agent.api_url, "events")
        async with program.serving():
            await program.until_live("library/policies", 1)
            direct = await slack.open_dm()
            opened = envelope("Ev1", type="app_home_opened", user=ALICE, channel=direct, tab="messages")
            assert await signed.send(opened) == 200
            (prompts,) = await until(
                lambda: called(agent, "assistant.threads.setSuggestedPrompts"), log=lambda: program.log
            )
            assert prompts["channel_id"] == direct
            assert prompts["prompts"][-1]["message"] == ASK_HELP
            asked = await slack.say(direct, "When do backups run?")
            (answer,) = await until(lambda: slack.posted(direct, "2:00 AM"), log=lambda: program.log)
            await slack.say(direct, "where is this written?", answer["ts"])
            below = await until(lambda: answered_below(slack, direct, answer["ts"]), log=lambda: program.log)
            assert "SOP-IT-04" in json.dumps(below)
            await until(lambda: all_at_rest(agent, 2), log=lambda: f"{agent.statuses} {program.log}")
    assert agent.titles == {
        (direct, asked): "When do backups run?",
        (direct, answer["ts"]): "where is this written?",
    }


async def answered_below(slack: SlackDouble, chat: str, thread: str) -> dict[str, Any] | None:
    """The bot's answer in a thread of a direct chat."""
    said = [one for one in await slack.messages(chat) if one.get("thread_ts") == thread]
    own = [one for one in said if one.get("user") == BOT and one.get("blocks") and one["ts"] != thread]
    return own[0] if own else None


async def all_at_rest(agent: AgentSlack, count: int) -> bool:
    """Whether so many sessions were begun, and nobody is at work in any."""
    return list(agent.statuses.values()) == ["active"] * count


async def called(agent: AgentSlack, method: str) -> list[dict[str, Any]] | None:
    """Calls of a method, once there are some."""
    return agent.called(method) or None


@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_a_models_answer_is_streamed_into_the_one_message_that_stays(
    program: Program, start_slack: StartSlack, sop: Path, browser: Browser
) -> None:
    """Sentence by sentence; in the end its words, sources and feedback are those of any answer."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    seen = asyncio.Event()

    async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
        await writer.drain()
        await seen.wait()
        writer.write(event(f", {claim('At 2 AM.')}]}}") + event(finish="stop"))
        await writer.drain()

    program.drop(CHANNEL, sop)
    async with byte_server(write) as model, agent_slack(slack) as agent:
        program.environment = slack_settings(agent.api_url, "events", OPENAI_BASE_URL=model)
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
            (answer,) = await until(
                lambda: slack.posted(IT, "Daily. [1] At 2 AM. [1]"), log=lambda: program.log
            )
            await page.get_by_text("At 2 AM.").wait_for()
            await page.screenshot(path=program.home / "streamed.png")
    assert (answer["ts"], answer["thread_ts"]) == (begun["ts"], root)
    assert not agent.streams
    kinds = [block["type"] for block in answer["blocks"]]
    assert kinds == ["section", "context", "actions", "context_actions", "actions"]
    assert len(await own(slack)) == 1
    await until(lambda: all_at_rest(agent, 1), log=lambda: str(agent.statuses))
    assert agent.titles == {(IT, root): "when do backups run?"}
    (started,) = agent.called("chat.startStream")
    assert (started["recipient_user_id"], started["recipient_team_id"]) == (ALICE, TEAM)


async def own(slack: SlackDouble) -> list[dict[str, Any]]:
    """All that the bot posted in the channel."""
    return [message for message in await slack.messages(IT) if message.get("user") == BOT]


@pytest.mark.engine("slack")
async def test_a_source_that_is_passed_on_is_previewed_in_its_own_channel_only(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """The page and the passage, where the answer was given; in another channel and a direct chat nothing."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    signed = Signed(slack.session, program.url, SECRET)
    async with agent_slack(slack) as agent:
        program.environment = slack_settings(agent.api_url, "events")
        program.drop(CHANNEL, sop)
        async with program.serving():
            await program.until_live(CHANNEL, 1)
            await slack.say(IT, f"<@{BOT}> when do backups run?")
            (answer,) = await until(lambda: slack.posted(IT, "2:00 AM"), log=lambda: program.log)
            sources = next(block for block in answer["blocks"] if block.get("block_id") == "sources")
            url = sources["elements"][0]["url"]
            for number, channel in enumerate((HR, await slack.open_dm(), IT)):
                ts = await slack.say(channel, f"look: {url}")
                links = [{"domain": "127.0.0.1", "url": url}]
                posted = {"channel": channel, "user": ALICE, "message_ts": ts, "links": links}
                assert await signed.send(envelope(f"EvL{number}", type="link_shared", **posted)) == 200
            await until(lambda: called(agent, "chat.unfurl"), log=lambda: program.log)
    (unfurled,) = agent.called("chat.unfurl")
    assert (unfurled["channel"], unfurled["ts"]) == (IT, ts)
    words = json.dumps(unfurled["unfurls"][url], ensure_ascii=False)
    assert "p. 1 · SOP-IT-04 Backup and Restore v2.1" in words
    assert "Backups run daily at 2:00 AM" in words


@pytest.mark.engine("slack")
async def test_the_stop_button_ends_a_streamed_answer(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Its message says so, the model is hung up on, the session rests; what is asked next is answered."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    signed, hung_up = Signed(slack.session, program.url, SECRET), asyncio.Event()

    async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
        await writer.drain()
        if b"how often" in request:
            writer.write(event("]}") + event(finish="stop"))
            await writer.drain()
            return
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(event(" "))
                await writer.drain()
                await asyncio.sleep(0.05)
        hung_up.set()

    program.drop(CHANNEL, sop)
    async with byte_server(write) as model, agent_slack(slack) as agent:
        program.environment = slack_settings(agent.api_url, "events", OPENAI_BASE_URL=model)
        async with program.serving():
            await program.until_live(CHANNEL, 1)
            root = await slack.say(IT, f"<@{BOT}> when do backups run?")
            (begun,) = await until(lambda: slack.posted(IT, "Daily."), log=lambda: program.log)
            pressed = envelope("EvS1", user=ALICE, **agent.press_stop(IT, root))
            assert await signed.send(pressed) == 200
            (stopped,) = await until(lambda: slack.posted(IT, WORDS.stopped), log=lambda: program.log)
            await asyncio.wait_for(hung_up.wait(), PATIENCE)
            await until(lambda: all_at_rest(agent, 1), log=lambda: str(agent.statuses))
            assert stopped["ts"] == begun["ts"]
            assert "Daily." not in json.dumps(stopped)
            assert await signed.send(pressed) == 200
            await slack.say(IT, "how often do backups run?", root)
            (answer,) = await until(lambda: slack.posted(IT, "Daily. [1]"), log=lambda: program.log)
    assert answer["ts"] != begun["ts"]
    assert len(await own(slack)) == 2
