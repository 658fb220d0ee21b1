"""Slack gives a channel a new id; the whole program keeps answering from its documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engines.slack import BOT, HR, IT, SECRET, TEAM, StartSlack, slack_settings
from fakes.slack_events import Signed, envelope
from harness.program import Program
from harness.waiting import until
from samples.paper import pdf

OLD, NEW = f"sl_{TEAM}_{IT}", f"sl_{TEAM}_{HR}"


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_channel_keeps_documents_and_links_under_a_new_id(
    program: Program, start_slack: StartSlack, sop: Path
) -> None:
    """Covers an answer under the new id, an old link, a new PDF in the old folder, a restart, the audit."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    program.environment = slack_settings(slack.api_url, "events") | {"FOOTNOTE_RECEIPTS": "channel"}
    news = envelope("Ev9", type="channel_id_changed", old_channel_id=IT, new_channel_id=HR, event_ts="9.1")
    signed = Signed(slack.session, program.url, SECRET)
    async with program.serving():
        program.drop(OLD, sop)
        await program.until_live(OLD, 1)
        await slack.say(IT, f"<@{BOT}> when do backups run?")
        (before,) = await until(lambda: slack.posted(IT, "[1]"), log=lambda: program.log)
        link = before["blocks"][-1]["elements"][0]["url"]
        receipts = await slack.posted(IT, "Added")
        assert [await signed.send(news) for _ in range(2)] == [200, 200]
        await slack.say(HR, f"<@{BOT}> when do backups run?")
        (after,) = await until(lambda: slack.posted(HR, "[1]"), log=lambda: program.log)
        assert "2:00 AM" in after["text"]
        async with slack.session.get(link) as page:
            assert page.status == 200
    async with program.serving():
        program.drop(OLD, pdf("Leave is 30 days a year."), "leave.pdf")
        await until(lambda: slack.posted(HR, "Added"), log=lambda: program.log)
        await slack.say(HR, f"<@{BOT}> how many days of leave a year?")
        await until(lambda: slack.posted(HR, "30 days"), log=lambda: program.log)
        assert await slack.posted(IT, "Added") == receipts
    (entry,) = map(json.loads, program.run("audit", "--json").stdout.splitlines())
    assert (entry["action"], entry["channel"], entry["subject"]) == ("move channel", OLD, NEW)
    (channel,) = map(json.loads, program.run("channels", "--json").stdout.splitlines())
    assert OLD in channel.values()
