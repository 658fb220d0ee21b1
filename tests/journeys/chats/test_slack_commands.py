"""``/footnote``, shared answers, edited and deleted questions: the whole program on a real Slack server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import (
    ALICE,
    BOT,
    HR,
    IT,
    TEAM,
    SlackDouble,
    StartSlack,
    slack_settings,
)
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import pdf

CHANNEL = f"sl_{TEAM}_{IT}"
CANARY = "Zanzibarium"


async def serve_slack(program: Program, start_slack: StartSlack, mode: str) -> SlackDouble:
    """Start a Slack server and configure the program for it."""
    slack = await start_slack(mode, f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, mode)
    return slack


async def command(slack: SlackDouble, text: str, channel: str = IT) -> None:
    """Run ``/footnote`` with this text as Alice."""
    await slack.post("/_control/command", channel=channel, user=ALICE, command="/footnote", text=text)


@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
@pytest.mark.long
@pytest.mark.parametrize("mode", ["socket", "events"])
async def test_a_private_answer_is_ephemeral_until_it_is_shared(
    program: Program, start_slack: StartSlack, sop: Path, mode: str, browser: Browser
) -> None:
    """List, help and answer are shown to one person; a click shares the answer.

    An edited question is answered again, a deleted one takes its answer with it.
    """
    slack = await serve_slack(program, start_slack, mode)
    async with program.serving():
        program.drop(CHANNEL, sop)
        program.drop(f"sl_{TEAM}_{HR}", pdf(f"The secret project is called {CANARY}."))
        await program.until_live(CHANNEL, 1)
        await program.until_live(f"sl_{TEAM}_{HR}", 1)
        await command(slack, "documents")
        await until(lambda: slack.posted(IT, WORDS.documents_known(1)), log=lambda: program.log)
        await command(slack, "")
        await until(lambda: slack.posted(IT, WORDS.help), log=lambda: program.log)
        await command(slack, "what is the secret project called?")
        await until(lambda: answers(slack, 3), log=lambda: program.log)
        await command(slack, "when do backups run?")
        (answer,) = await until(lambda: slack.posted(IT, "2:00 AM"), log=lambda: program.log)
        mine = [message for message in await slack.messages(IT) if message.get("user") == BOT]
        assert {message["ephemeral_to"] for message in mine} == {ALICE}
        assert CANARY not in json.dumps(mine)
        assert "<@U0ALICE01>: when do backups run?" in answer["text"]
        kinds = [block["type"] for block in answer["blocks"]]
        assert kinds == ["context", "section", "actions", "actions"]
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.get_by_role("button", name=WORDS.share).last.wait_for()
        await page.screenshot(path=program.home / "private.png")
        await page.get_by_role("button", name="Why?").last.click()
        await until(
            lambda: slack.posted(IT, WORDS.why_asked(question="when do backups run?")),
            log=lambda: program.log,
        )
        await page.get_by_role("button", name=WORDS.share).last.click()
        (shared,) = await until(lambda: shared_answers(slack), log=lambda: program.log)
        assert "2:00 AM" in json.dumps(shared)
        assert WORDS.share not in json.dumps(shared)
        await page.screenshot(path=program.home / "shared.png")
        await until(lambda: is_gone(slack, answer["ts"]), log=lambda: program.log)
        await edit_and_delete(program, slack)


async def answers(slack: SlackDouble, count: int) -> bool:
    """True if this many private answers exist, each with its button."""
    return len(await slack.posted(IT, "share-answer") or ()) == count


async def shared_answers(slack: SlackDouble) -> list[dict[str, Any]] | None:
    """Return the bot's messages to the whole channel."""
    said = await slack.posted(IT, "") or []
    return [message for message in said if message.get("subtype") != "ephemeral"] or None


async def edit_and_delete(program: Program, slack: SlackDouble) -> None:
    """Edit and delete a question; edits without new text and edits of other messages have no effect."""
    asked = await slack.say(IT, f"<@{BOT}> when do backups run?")
    other = await slack.say(IT, "has anybody seen my cup?")
    (first,) = await until(lambda: answered_in(slack, asked), log=lambda: program.log)
    assert "2:00 AM" in json.dumps(first)
    edited = {"channel": IT, "user": ALICE, "ts": asked}
    await slack.post("/_control/edit-message", **edited, text=f"<@{BOT}> how often are restores tested?")
    await slack.post("/_control/edit-message", **edited | {"ts": other}, text="how about my cup?")
    (second,) = await until(lambda: slack.posted(IT, "Once in every quarter"), log=lambda: program.log)
    assert second["ts"] == first["ts"]
    assert "2:00 AM" not in json.dumps(second)
    await slack.post("/_control/delete-message", **edited)
    await until(lambda: is_gone(slack, first["ts"]), log=lambda: program.log)
    assert not await answered_in(slack, asked)
    assert not await answered_in(slack, other)


async def answered_in(slack: SlackDouble, thread: str) -> list[dict[str, Any]] | None:
    """Return the finished answers in a thread."""
    said = await slack.posted(IT, "") or []
    return [one for one in said if one.get("thread_ts") == thread and one.get("blocks")] or None


async def is_gone(slack: SlackDouble, ts: str) -> bool:
    return ts not in [message["ts"] for message in await slack.messages(IT)]
