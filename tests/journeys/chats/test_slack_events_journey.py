"""A person in a real Slack server says that an answer was wrong, and where the right page is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import BOT, HR, IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.core import WORDS
from fakes.slack_events import Signed
from harness.program import Program
from harness.waiting import until

ALICE = "U0ALICE01"


def click(channel: str, block: dict[str, Any], action: dict[str, Any], **more: Any) -> dict[str, Any]:
    """As Slack sends it for Alice."""
    return {
        "type": "block_actions",
        "team": {"id": TEAM},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": ALICE},
        "channel": {"id": channel},
        "container": {"channel_id": channel},
        "actions": [{"block_id": block["block_id"], **action}],
        **more,
    }


@pytest.mark.engine("slack")
async def test_feedback_of_an_answer_becomes_a_case(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Shows thumb, reason and page, "Why?", new links by a click; another channel's click says nothing."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    signed = Signed(slack.session, program.url, SECRET)
    channel = f"sl_{TEAM}_{IT}"
    async with program.serving():
        program.drop(channel, sop)
        await program.until_live(channel, 1)
        await slack.say(IT, f"<@{BOT}> when do backups run?")
        (answer,) = await until(lambda: slack.posted(IT, WORDS.quotes_lead), log=lambda: program.log)
        thumbs, whys = [one for one in answer["blocks"] if one.get("block_id", "").startswith("feedback:")]
        bad = {"action_id": "feedback", **thumbs["elements"][0]["negative_button"]}
        assert await signed.click(click(IT, thumbs, bad)) == 200
        reason = {
            "action_id": "feedback-wrong_page",
            "value": bad["value"].replace("bad ", "wrong_page ", 1),
        }
        block = {"block_id": f"{thumbs['block_id']}:reason"}
        menu = {f"{thumbs['block_id']}:page": {"feedback-page": {"selected_option": {"value": "0"}}}}
        assert await signed.click(click(IT, block, reason, state={"values": menu})) == 200
        why = {"action_id": "feedback-why", "value": whys["elements"][0]["value"]}
        assert await signed.click(click(IT, whys, why)) == 200
        await until(lambda: whispers(slack, WORDS.why_passages), log=lambda: program.log)
        assert await whispers(slack, WORDS.what_was_wrong)
        assert await whispers(slack, WORDS.feedback_thanks)
        links = {"action_id": "feedback-links", "value": whys["elements"][1]["value"]}
        assert await signed.click(click(IT, whys, links)) == 200
        await until(
            lambda: whispers(slack, WORDS.links_renewed(question="when do backups run?")),
            log=lambda: program.log,
        )
        good = {"action_id": "feedback", **thumbs["elements"][0]["positive_button"]}
        assert await signed.click(click(HR, thumbs, good)) == 200
    (case,) = map(json.loads, program.run("feedback", "export").stdout.splitlines())
    assert (case["verdict"], case["kind"], case["documents"]) == ("wrong_page", "single", [sop.name])


async def whispers(slack: SlackDouble, words: str) -> bool:
    """Whether something with these words was said to one person alone."""
    return words in json.dumps(await slack.log(), ensure_ascii=False)
