"""A workspace of a real Slack server over events: welcome, previews, feedback, and a direct chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines.slack import ALICE, BOT, HR, IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.agent_slack import AgentSlack, agent_slack
from fakes.core import WORDS
from fakes.slack_events import Signed, envelope, joined
from harness.program import Program
from harness.waiting import until

from bot.chat.notifications.notification_wording import ASK_HELP

CHANNEL = f"sl_{TEAM}_{IT}"


def click(channel: str, block: dict[str, Any], action: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the interaction that Slack sends for a click by Alice."""
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


@pytest.mark.long
@pytest.mark.engine("slack")
async def test_a_workspace_over_events(program: Program, start_slack: StartSlack, sop: Path) -> None:
    """Covers a channel without documents, one whose answer is shared and rated, and a direct chat."""
    slack = await start_slack("events", f"{program.url}/slack/events")
    library = program.home / "policies"
    library.mkdir(parents=True)
    (library / sop.name).write_bytes(sop.read_bytes())
    text = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{library}"\n'
    (program.home / "folders.toml").write_text(f'{text}[direct_chats]\nlibrary = "policies"\n')
    program.drop(CHANNEL, sop)
    async with agent_slack(slack) as agent:
        program.environment = slack_settings(agent.api_url, "events")
        async with program.serving():
            await program.until_live(CHANNEL, 1)
            await welcome(program, slack, sop)
            await program.until_live("library/policies", 1)
            await ask_directly(program, slack, agent)
            await slack.say(IT, f"<@{BOT}> when do backups run?")
            (answer,) = await until(lambda: slack.posted(IT, "[1]"), log=lambda: program.log)
            await pass_on(program, slack, agent, answer)
            await judge(program, slack, answer)
    (case,) = map(json.loads, program.run("feedback", "export").stdout.splitlines())
    assert (case["verdict"], case["kind"], case["documents"]) == ("wrong_page", "single", [sop.name])


async def welcome(program: Program, slack: SlackDouble, sop: Path) -> None:
    """Check the welcome: files in the new folder are answered from; other members' joins trigger none."""
    signed = Signed(slack.session, program.url, SECRET)
    folder = program.home / "inbox" / f"sl_{TEAM}_{HR}"
    assert await signed.send(joined(IT, "Ev1", user=ALICE)) == 200
    assert await signed.send(joined(HR, "Ev2")) == 200
    (said,) = await until(lambda: slack.posted(HR, "I’m Footnote"), log=lambda: program.log)
    assert str(folder) not in said["text"]
    assert folder.is_dir()
    await slack.say(HR, f"<@{BOT}> when do backups run?")
    place = WORDS.empty_named_channel(channel="#hr")
    await until(lambda: slack.posted(HR, place), log=lambda: program.log)
    (folder / sop.name).write_bytes(sop.read_bytes())
    await program.until_live(folder.name, 1)
    await slack.say(HR, f"<@{BOT}> when do backups run?")
    await until(lambda: slack.posted(HR, "2:00 AM"), log=lambda: program.log)
    assert await slack.posted(IT, "") is None


async def pass_on(program: Program, slack: SlackDouble, agent: AgentSlack, answer: dict[str, Any]) -> None:
    """Check that a source is previewed in its answer's channel, and in no other channel or direct chat."""
    signed = Signed(slack.session, program.url, SECRET)
    sources = next(block for block in answer["blocks"] if block.get("block_id") == "sources")
    url = sources["elements"][0]["url"]
    for number, channel in enumerate((HR, await slack.open_dm(), IT)):
        ts = await slack.say(channel, f"look: {url}")
        links = [{"domain": "127.0.0.1", "url": url}]
        posted = {"channel": channel, "user": ALICE, "message_ts": ts, "links": links}
        assert await signed.send(envelope(f"EvL{number}", type="link_shared", **posted)) == 200
    (unfurled,) = await until(lambda: called(agent, "chat.unfurl"), log=lambda: program.log)
    assert (unfurled["channel"], unfurled["ts"]) == (IT, ts)
    words = json.dumps(unfurled["unfurls"][url], ensure_ascii=False)
    assert "p. 1 · SOP-IT-04 Backup and Restore v2.1" in words
    assert "Backups run daily at 2:00 AM" in words


async def judge(program: Program, slack: SlackDouble, answer: dict[str, Any]) -> None:
    """Check thumb, reason and page, "Why?", and renewed links; a click from another channel has no effect."""
    signed = Signed(slack.session, program.url, SECRET)
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
    await until(lambda: has_ephemeral(slack, WORDS.why_passages), log=lambda: program.log)
    assert await has_ephemeral(slack, WORDS.what_was_wrong)
    assert await has_ephemeral(slack, WORDS.feedback_thanks)
    links = {"action_id": "feedback-links", "value": whys["elements"][1]["value"]}
    assert await signed.click(click(IT, whys, links)) == 200
    renewed = WORDS.links_renewed(question="when do backups run?")
    await until(lambda: has_ephemeral(slack, renewed), log=lambda: program.log)
    good = {"action_id": "feedback", **thumbs["elements"][0]["positive_button"]}
    assert await signed.click(click(HR, thumbs, good)) == 200


async def ask_directly(program: Program, slack: SlackDouble, agent: AgentSlack) -> None:
    """Check direct chats: prompts when the tab is opened, and a session per question, named after it.

    A reply below an answer refers to that one, and is answered there.
    """
    signed = Signed(slack.session, program.url, SECRET)
    direct = await slack.open_dm()
    opened = envelope("EvO1", type="app_home_opened", user=ALICE, channel=direct, tab="messages")
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
    titles = {(direct, asked): "When do backups run?", (direct, answer["ts"]): "where is this written?"}

    async def all_rest() -> bool:
        return all(agent.statuses.get(session) == "active" for session in titles)

    await until(all_rest, log=lambda: f"{agent.statuses} {program.log}")
    assert titles.items() <= agent.titles.items()


async def answered_below(slack: SlackDouble, chat: str, thread: str) -> dict[str, Any] | None:
    """Return the bot's answer in a thread of a direct chat."""
    said = [one for one in await slack.messages(chat) if one.get("thread_ts") == thread]
    own = [one for one in said if one.get("user") == BOT and one.get("blocks") and one["ts"] != thread]
    return own[0] if own else None


async def called(agent: AgentSlack, method: str) -> list[dict[str, Any]] | None:
    """Return the calls of a method, or None."""
    return agent.called(method) or None


async def has_ephemeral(slack: SlackDouble, words: str) -> bool:
    """True if an ephemeral message with these words was posted."""
    return words in json.dumps(await slack.log(), ensure_ascii=False)
