"""``serve`` killed at each point of an answer: messages that reach the Playground and Slack are counted."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from engines.playground import OPERATIONS, PERSONAL, TENANT, StartPlayground
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from fakes.agent_slack import agent_slack
from fakes.model_server import STREAM_HEAD, byte_server, event
from harness.crash_points import VARIABLE
from harness.program import Program
from harness.waiting import until

from storage.crash_points import ANSWER_POINTS
from storage.models import ChannelKey, Platform

# A question, and words of its answer only.
ANSWERED = ("when do backups run?", "2:00 AM")
# A plain no has a card, which offers a person.
NOT_FOUND = ("How do I reset my Concur password?", "Concur")
DEVELOPMENT = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
LIBRARY = "library/policies"
# Teams has accepted it without returning its id: it cannot be updated.
ORPHANS = {"amid-placeholder": 1}
CARD_POINTS = [one for one in ANSWER_POINTS if "card" in one]
TEXT_POINTS = [one for one in ANSWER_POINTS if one not in CARD_POINTS]
# A second card would be worse than none: one that may have been posted is not posted again.
LOST_CARDS = {"before-card"}


def end_leases(program: Program) -> None:
    """Expire all leases, as time does after a kill."""
    with closing(sqlite3.connect(program.home / "footnote.db")) as database:
        database.execute("UPDATE inbox SET lease_until = '2000-01-01 00:00:00.000000'")
        database.commit()


def is_over(program: Program) -> bool:
    """True if every question is answered."""
    with closing(sqlite3.connect(program.home / "footnote.db")) as database:
        return database.execute("SELECT count(*) FROM inbox WHERE state <> 'done'").fetchone() == (0,)


def counted(calls: list[dict[str, Any]], words: str) -> tuple[int, int, int]:
    """Return the number of answers with the words, cards of their own, and messages never replaced.

    In a personal chat an answer and its row of buttons are one message.
    """
    last: dict[str, dict[str, Any]] = {}
    for call in calls:
        body, reply = call["request"]["body"], call["response"]
        assert reply["statusCode"] < 300, call
        if "text" in body or body.get("attachments"):
            (stream,) = [info.get("streamId") for info in body.get("entities", ()) if "streamId" in info] or [
                None
            ]
            last[body.get("id") or stream or reply["body"]["id"]] = body
    answers = [one for one in last.values() if words in one.get("text", "")]
    cards = [one for one in last.values() if one.get("attachments") and one not in answers]
    return len(answers), len(cards), len(last) - len(cards) - len(answers)


@pytest.mark.timeout(900)
@pytest.mark.engine("playground")
@pytest.mark.parametrize(
    ("conversation", "points"),
    [
        pytest.param(OPERATIONS, ["after-answer"], id="one kill"),
        pytest.param(OPERATIONS, TEXT_POINTS, id="channel", marks=pytest.mark.long),
        pytest.param(PERSONAL, TEXT_POINTS, id="personal chat", marks=pytest.mark.long),
        pytest.param(OPERATIONS, CARD_POINTS, id="card", marks=pytest.mark.long),
    ],
)
async def test_a_kill_at_each_point_leaves_one_answer(
    program: Program, start_playground: StartPlayground, sop: Path, conversation: str, points: Sequence[str]
) -> None:
    """A question is killed with SIGKILL at each point; the next ``serve`` completes it."""
    playground = await start_playground(f"{program.url}/api/messages")
    channel = ChannelKey(Platform("teams"), TENANT, OPERATIONS).tenant
    if conversation == PERSONAL:
        channel, folder = LIBRARY, program.home / "policies"
        folder.mkdir(parents=True)
        (folder / sop.name).write_bytes(sop.read_bytes())
        library = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{folder}"\n'
        (program.home / "folders.toml").write_text(f'{library}[direct_chats]\nlibrary = "policies"\n')
    else:
        program.drop(channel, sop)
    question, words = NOT_FOUND if points == CARD_POINTS else ANSWERED
    table = {}
    for point in points:
        before = len(playground.calls())
        program.environment = DEVELOPMENT | {VARIABLE: point}
        async with program.serving() as process:
            await program.until_live(channel, 1)
            await playground.say(conversation, question, mention=conversation == OPERATIONS)
            await asyncio.to_thread(process.wait, 60)
        end_leases(program)
        program.environment = DEVELOPMENT
        async with program.serving():
            await until(lambda: asyncio.to_thread(is_over, program), log=lambda: program.log)
        table[point] = counted(playground.calls()[before:], words)
    cards = {one: int(one not in LOST_CARDS) for one in CARD_POINTS}
    assert table == {point: (1, cards.get(point, 0), ORPHANS.get(point, 0)) for point in points}


def claim(text: str) -> str:
    """Return a model's claim with a quote from the document."""
    return json.dumps({"text": text, "quotes": [{"passage": 1, "quote": "daily at 2:00 AM"}]})


async def write(request: bytes, writer: asyncio.StreamWriter) -> None:
    """Stream two sentences with a pause in between."""
    writer.write(STREAM_HEAD + event(f'{{"sufficient": true, "claims": [{claim("Daily.")}'))
    await writer.drain()
    await asyncio.sleep(0.5)
    writer.write(event(f", {claim('At 2 AM.')}]}}") + event(finish="stop"))
    await writer.drain()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.engine("slack")
async def test_a_kill_amid_streamed_follow_ups_leaves_one_answer_each(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Two follow-ups in a thread per point; the second is killed with SIGKILL there."""
    slack, channel = await start_slack("events", f"{program.url}/slack/events"), f"sl_{TEAM}_{IT}"
    program.drop(channel, sop)
    async with byte_server(write) as model, agent_slack(slack) as agent:
        settings = slack_settings(
            agent.api_url, "events", OPENAI_BASE_URL=model, FOOTNOTE_VERIFY="words", FOOTNOTE_RECEIPTS="off"
        )
        program.environment = settings
        async with program.serving():
            await program.until_live(channel, 1)
        table = {}
        for point in TEXT_POINTS:
            program.environment = settings
            async with program.serving():
                root = await slack.say(IT, f"<@{BOT}> when do backups run?")
                await until(lambda: asyncio.to_thread(is_over, program), log=lambda: program.log)
            program.environment = settings | {VARIABLE: f"{point}:2"}
            async with program.serving() as process:
                for asked in ("when do the backups run?", "how often do backups run?"):
                    await slack.say(IT, asked, root)
                await asyncio.to_thread(process.wait, 60)
            end_leases(program)
            program.environment = settings
            async with program.serving():
                await until(lambda: asyncio.to_thread(is_over, program), log=lambda: program.log)
            thread = [one for one in await slack.messages(IT) if one.get("thread_ts") == root]
            own = [one for one in thread if one.get("user") == BOT]
            answers = [one for one in own if "Daily." in one["text"] and "feedback" in json.dumps(one)]
            table[point] = (len(answers), len(own), len(agent.streams))
        assert table == dict.fromkeys(TEXT_POINTS, (3, 3, 0))
        assert len(agent.called("chat.startStream")) >= 3 * len(TEXT_POINTS)
        assert set(agent.statuses.values()) == {"active"}
