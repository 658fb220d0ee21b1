"""App Home of the whole program on a real Slack server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engines.slack import (
    ALICE,
    BOT,
    HR,
    IT,
    SECRET,
    TEAM,
    SlackDouble,
    StartSlack,
    slack_settings,
)
from fakes.core import WORDS
from fakes.slack_events import Signed, joined
from harness.program import Program
from harness.waiting import until
from playwright.async_api import Browser
from samples.paper import faq_pdf, pdf

from bot.chat.notifications.notification_wording import HOME_LEAD, HOME_RECENT

CANARY = "Zanzibarium"
BOARD = "C0BOARD01"


async def homes(slack: SlackDouble) -> list[dict[str, Any]] | None:
    """Return the published views, oldest first."""
    calls = [entry for entry in await slack.log() if entry["summary"] == "views.publish"]
    return calls or None


def first_question(view: dict[str, Any], channel: str) -> dict[str, Any]:
    """Return Alice's click on the first question of a channel, which the double does not send."""
    block = next(one for one in view["blocks"] if one.get("block_id") == f"ask:1:sl_{TEAM}_{channel}")
    action = {name: block["accessory"][name] for name in ("action_id", "value")}
    return {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": ALICE, "team_id": TEAM},
        "container": {"type": "view", "view_id": "V1"},
        "view": {"type": "home", "private_metadata": view["private_metadata"]},
        "actions": [action | {"block_id": block["block_id"], "action_ts": "18.0001"}],
    }


@pytest.mark.long
@pytest.mark.engine("slack")
@pytest.mark.engine("chromium")
async def test_a_home_question_is_answered_in_the_direct_chat(
    program: Program, start_slack: StartSlack, browser: Browser
) -> None:
    """A click, delivered twice, gives one answer from the channel's documents only, with feedback.

    The question becomes a recent one; the home shows documents, news and help, and no channel that Slack does
    not list.
    """
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    signed = Signed(slack.session, program.url, SECRET)
    async with program.serving():
        program.drop(f"sl_{TEAM}_{IT}", faq_pdf(), "backups.pdf")
        program.drop(f"sl_{TEAM}_{HR}", pdf("Leave is 30 days a year."), "leave.pdf")
        program.drop(f"sl_{TEAM}_{BOARD}", pdf(f"The secret project is called {CANARY}."), f"{CANARY}.pdf")
        for channel in (IT, HR, BOARD):
            await program.until_live(f"sl_{TEAM}_{channel}", 1)
        await signed.send(joined(IT, "Ev1"))
        await until(lambda: slack.posted(IT, "I’m Footnote"), log=lambda: program.log)
        await slack.say(IT, f"<@{BOT}> when do backups run?")
        await until(lambda: slack.posted(IT, "2:00 AM"), log=lambda: program.log)
        await slack.post("/_control/open-home", user=ALICE)
        (home,) = await until(lambda: homes(slack), log=lambda: program.log)
        shown = json.dumps(home, ensure_ascii=False)
        for words in (HOME_LEAD, HOME_RECENT, "#it-ops", "Backup questions", "leave.pdf"):
            assert words in shown
        assert CANARY not in shown
        assert "|when do backups run?> (#it-ops)" in shown
        assert [one["type"] for one in home["detail"]["view"]["blocks"][:2]] == ["header", "input"]
        page = await browser.new_page(viewport={"width": 1280, "height": 1000})
        await page.goto(slack.url)
        await page.locator("button.sidebar-item", has_text="footnote").click()
        await page.get_by_text(HOME_RECENT).wait_for()
        await page.get_by_text("Backup questions").first.wait_for()
        await page.screenshot(path=program.home / "home.png")
        click = first_question(home["detail"]["view"], IT)
        assert [await signed.click(click) for _ in range(2)] == [200, 200]
        direct = await slack.open_dm()
        (answer,) = await until(lambda: slack.posted(direct, "[1]"), log=lambda: program.log)
        question = click["actions"][0]["value"]
        assert f"<@{ALICE}> <#{IT}>: {question}" in answer["text"]
        assert [one["type"] for one in answer["blocks"][-2:]] == ["section", "actions"]
        await page.reload()
        await page.locator("button.sidebar-item", has_text="alice").click()
        await page.get_by_text("[1]").first.wait_for()
        await page.screenshot(path=program.home / "direct.png")
        value = answer["blocks"][-1]["elements"][-1]["value"]
        why = {"action_id": "feedback-why", "block_id": answer["blocks"][-1]["block_id"], "value": value}
        place = {"channel": {"id": direct}, "message": {"ts": answer["ts"]}, "view": None}
        assert await signed.click(click | place | {"actions": [why]}) == 200
        explained = WORDS.why_asked(question=question)
        (reply,) = await until(lambda: slack.posted(direct, explained), log=lambda: program.log)
        assert reply["ephemeral_to"] == ALICE
        assert len(await slack.posted(direct, "[1]") or ()) == 1
