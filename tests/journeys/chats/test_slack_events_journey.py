"""A workspace of a real Slack server over events: welcome, previews, feedback, and a direct chat."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from engines.slack import ALICE, BOT, CAROL, HR, IT, SECRET, TEAM, SlackDouble, StartSlack, slack_settings
from fakes.agent_slack import AgentSlack, agent_slack
from fakes.core import WORDS
from fakes.slack_events import Signed, deliver, envelope, joined
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
    owned = f'[[folder]]\nlocation = "{program.home / "owned"}"\nchannel = "{CHANNEL}"\n'
    owned += f'owner = "slack:{TEAM}:{CAROL}"\n'
    (program.home / "folders.toml").write_text(f'{owned}{text}[direct_chats]\nlibrary = "policies"\n')
    own = program.home / "owned"
    own.mkdir()
    (own / sop.name).write_bytes(sop.read_bytes())
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
            await mention(program, slack)
            await ask_person(program, slack)
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
    url = answer["blocks"][-1]["elements"][0]["url"]
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
    """Check thumb, reason and page, and "Why?"; a click from another channel has no effect."""
    signed = Signed(slack.session, program.url, SECRET)
    row = answer["blocks"][-1]
    _, good, bad, why = row["elements"]
    await deliver(partial(signed.click, click(IT, row, bad)))
    reason = {
        "action_id": "feedback-wrong_page",
        "value": bad["value"].replace("bad ", "wrong_page ", 1),
    }
    block = {"block_id": f"{row['block_id']}:reason"}
    menu = {f"{row['block_id']}:page": {"feedback-page": {"selected_option": {"value": "0"}}}}
    await deliver(partial(signed.click, click(IT, block, reason, state={"values": menu})))
    await deliver(partial(signed.click, click(IT, row, why)))
    asked = WORDS.why_asked(question="when do backups run?")
    await until(lambda: has_ephemeral(slack, asked), log=lambda: program.log)
    assert await has_ephemeral(slack, WORDS.what_was_wrong)
    assert await has_ephemeral(slack, WORDS.feedback_thanks)
    await deliver(partial(signed.click, click(HR, row, good)))


async def mention(program: Program, slack: SlackDouble) -> None:
    """Check that each way of mentioning the bot is answered, and that its words alone are searched.

    Covers the middle of a sentence, several mentions, "/me", a reply also sent to the channel, blocks without
    a text, emoji, user groups, and a mention added by an edit.
    """
    signed = Signed(slack.session, program.url, SECRET)
    root = await slack.say(IT, "has anybody read the backup rules?")
    rich = {"type": "rich_text_section", "elements": [{"type": "user", "user_id": BOT}]}
    rich["elements"] += [{"type": "text", "text": " when do backups run?"}]
    ways: list[dict[str, Any]] = [
        {"text": f"tell us <@{BOT}> when do backups run?"},
        {"text": f"<@{BOT}> <@U0BOB0001> when do backups run? <@{BOT}>"},
        {"text": f":wave: <@{BOT}> when do backups run? <!subteam^S0TEAM|@it-ops> :pray::skin-tone-2:"},
        {"text": f"<@{BOT}> when do backups run?", "subtype": "me_message"},
        {"text": f"<@{BOT}> when do backups run?", "subtype": "thread_broadcast", "thread_ts": root},
        {"text": "", "blocks": [{"type": "rich_text", "elements": [rich]}]},
    ]
    known = len(await slack.posted(IT, "2:00 AM") or ())
    for number, way in enumerate(ways):
        said = {"channel": IT, "channel_type": "channel", "user": ALICE, "ts": f"170000000{number}.000100"}
        await deliver(partial(signed.send, envelope(f"EvM{number}", type="message", **said, **way)))
    await slack.post(
        "/_control/edit-message", channel=IT, ts=root, user=ALICE, text=f"<@{BOT}> when do backups run?"
    )

    async def are_answered() -> bool:
        return len(await slack.posted(IT, "2:00 AM") or ()) == known + len(ways) + 1

    await until(are_answered, log=lambda: program.log)
    said = json.dumps(await slack.messages(IT), ensure_ascii=False)
    for word in ("U0BOB0001", "it-ops", "wave", "pray"):
        assert f"“{word}”" not in said


async def ask_person(program: Program, slack: SlackDouble) -> None:
    """Check a plain no: its owner, who is a member, is told in the thread, once; *Resolved* closes it.

    Nobody who is no member is told.
    """
    signed = Signed(slack.session, program.url, SECRET)
    asked = await slack.say(IT, f"<@{BOT}> What does the moon cost?")

    async def refusals() -> list[dict[str, Any]]:
        offers = await slack.posted(IT, WORDS.ask_person) or ()
        return [one for one in offers if one.get("thread_ts") == asked]

    (answer,) = await until(refusals, log=lambda: program.log)
    row, thread = answer["blocks"][-1], {"message": {"ts": answer["ts"], "thread_ts": asked}}
    person = row["elements"][-1]
    for _ in range(2):
        await deliver(partial(signed.click, click(IT, row, person, **thread)))
    (told,) = await until(lambda: slack.posted(IT, WORDS.person_needed), log=lambda: program.log)
    assert (told["thread_ts"], f"<@{CAROL}> · <@{ALICE}>" in told["text"]) == (asked, True)
    assert "What does the moon cost?" in told["text"]
    await until(lambda: has_ephemeral(slack, WORDS.person_told), log=lambda: program.log)
    await until(lambda: has_ephemeral(slack, WORDS.person_asked), log=lambda: program.log)
    doubts = [json.loads(line)["doubts"] for line in program.run("gaps", "--json").stdout.splitlines()]
    assert [one for one in doubts if "needs_person" in one] == [{"needs_person": 1}]
    buttons = told["blocks"][-1]
    (resolved,) = buttons["elements"]
    message = {"message": told | {"thread_ts": asked}, "user": {"id": CAROL}}
    await deliver(partial(signed.click, click(IT, buttons, resolved, **message)))
    done = f"✅ {WORDS.resolved} · <@{CAROL}>"
    await until(lambda: slack.posted(IT, done), log=lambda: program.log)
    assert "needs_person" not in program.run("gaps", "--json").stdout


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
