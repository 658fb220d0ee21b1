"""Follow-ups in a thread, by the whole program on a real Slack server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from engines.slack import BOT, IT, TEAM, StartSlack, slack_settings
from harness.program import Program

CHANNEL = f"sl_{TEAM}_{IT}"


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_thread_is_known_after_a_restart(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Shows that threads are stored in SQL; with follow-ups off a mention is needed again."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events")
    async with program.serving():
        program.drop(CHANNEL, sop)
        await program.until_live(CHANNEL, 1)
        root = await slack.say(IT, f"<@{BOT}> when do backups run?")
        await slack.replies(IT)
    async with program.serving():
        await slack.say(IT, "how often are they tested?", thread=root)
        await slack.replies(IT, 2)
    program.environment["FOOTNOTE_THREAD_FOLLOW_UPS"] = "false"
    async with program.serving():
        await slack.say(IT, "and who is told?", thread=root)
        await slack.say(IT, f"<@{BOT}> who is told?", thread=root)
        replies = await slack.replies(IT, 3)
        await asyncio.sleep(1)
        assert len(await slack.replies(IT, 3)) == len(replies) == 3
