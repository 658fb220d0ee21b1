"""Feedback and "Why?" in Microsoft's Agents Playground."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest
from engines.playground import BOT_ID, OPERATIONS, PERSONAL, TENANT, Playground, StartPlayground
from fakes.core import WORDS
from harness.program import Program
from harness.waiting import until

from storage.models import ChannelKey, Platform

LIBRARY = "library/policies"
# Person 1 of the Playground, which looks members up by this id.
OWNER = "user-id-1"


def from_user(playground: Playground, conversation: str, **fields: Any) -> dict[str, Any]:
    """Return an activity of the Playground's user, with the tenant where invokes have it."""
    kind = "personal" if conversation == PERSONAL else "channel"
    return {
        "id": f"{conversation}-{len(json.dumps(fields))}",
        "channelId": "msteams",
        "from": {"id": "user-id-0", "aadObjectId": "00000000-0000-0000-0000-000000000020"},
        "recipient": {"id": BOT_ID},
        "conversation": {"id": conversation, "conversationType": kind, "tenantId": TENANT},
        "channelData": {"source": {"name": "message"}},
        "serviceUrl": f"{playground.url}/_connector",
        **fields,
    }


def thumb(message: str, reaction: str = "dislike", words: str = "") -> dict[str, Any]:
    """Return the invoke of Teams' own feedback buttons."""
    said = {"reaction": reaction, "feedback": json.dumps({"feedbackText": words})}
    value = {"actionName": "feedback", "actionValue": said}
    return {"type": "invoke", "name": "message/submitAction", "replyToId": message, "value": value}


async def invoked(program: Program, activity: dict[str, Any]) -> tuple[int, str]:
    """Return status and body of an invoke's response."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{program.url}/api/messages", json=activity) as response,
    ):
        return response.status, await response.text()


async def said_in(playground: Playground, conversation: str, words: str) -> list[dict[str, Any]] | None:
    """Return the bot's messages in a conversation with these words and their ids, or None."""
    found = []
    for call in playground.calls():
        body = call["request"]["body"]
        if conversation in unquote(call["request"]["url"]) and words in json.dumps(body, ensure_ascii=False):
            found.append(body)
    return found or None


@pytest.mark.long
@pytest.mark.engine("playground")
async def test_feedback_on_a_channel_answer_is_recorded(
    program: Program, start_playground: StartPlayground, sop: Path
) -> None:
    """A thumb with a comment; another chat or a forged id has no effect. A plain no offers to ask a person.

    The owner, who is a member, is told below the answer; *Resolved* closes it.
    """
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    channel = ChannelKey(Platform("teams"), TENANT, OPERATIONS).tenant
    own = program.home / "owned"
    own.mkdir(parents=True)
    (own / sop.name).write_bytes(sop.read_bytes())
    (program.home / "folders.toml").write_text(
        f'[[folder]]\nlocation = "{own}"\nchannel = "{channel}"\nowner = "teams:{TENANT}:{OWNER}"\n'
    )
    async with program.serving():
        await program.until_live(channel, 1)
        where = await playground.say(OPERATIONS, "when do backups run?", mention=True)
        answer, *_ = await until(lambda: said_in(playground, OPERATIONS, "[1]"), log=lambda: program.log)
        assert answer["channelData"] == {"feedbackLoop": {"type": "default"}}
        mine = from_user(playground, where, **thumb(answer["id"], "like", "Found at once."))
        assert await invoked(program, mine) == (200, "{}")
        for forged in (
            from_user(playground, where, **thumb("1700000000000")),
            from_user(playground, PERSONAL, **thumb(answer["id"])),
            mine | {"conversation": mine["conversation"] | {"tenantId": "another-tenant"}},
        ):
            assert await invoked(program, forged) == (404, "{}")
        await ask_person(program, playground)
    (case,) = map(json.loads, program.run("feedback", "export").stdout.splitlines())
    assert (case["verdict"], case["documents"]) == ("good", [sop.name])


async def ask_person(program: Program, playground: Playground) -> None:
    """Ask a question without an answer, click *Ask a person*, then *Resolved*."""
    where = await playground.say(OPERATIONS, "What does the moon cost?", mention=True)
    (offer,) = await until(
        lambda: said_in(playground, OPERATIONS, f'"{WORDS.ask_person}"'), log=lambda: program.log
    )
    (button,) = offer["attachments"][0]["content"]["body"][-1]["actions"]
    await playground.send(from_user(playground, where, type="message", value=button["data"]))
    (told,) = await until(
        lambda: said_in(playground, OPERATIONS, WORDS.person_needed), log=lambda: program.log
    )
    assert "What does the moon cost?" in json.dumps(told)
    card = told["attachments"][0]["content"]
    assert card["msteams"]["entities"][0]["mentioned"]["name"] == "Person 1"
    await until(lambda: said_in(playground, OPERATIONS, WORDS.person_told), log=lambda: program.log)
    gaps = program.run("gaps", "--json").stdout
    assert json.loads(gaps)["doubts"] == {"needs_person": 1}
    done = card["body"][-1]["actions"][0]["data"]
    id = next(
        call["response"]["body"]["id"]
        for call in playground.calls()
        if WORDS.person_needed in json.dumps(call["request"]["body"], ensure_ascii=False)
    )
    await playground.send(from_user(playground, where, type="message", value=done, replyToId=id))
    await until(lambda: said_in(playground, OPERATIONS, f"✅ {WORDS.resolved}"), log=lambda: program.log)
    assert program.run("gaps", "--json").stdout == ""


@pytest.mark.long
@pytest.mark.engine("playground")
async def test_a_personal_chat_offers_feedback_reasons_and_why(
    program: Program, start_playground: StartPlayground, sop: Path
) -> None:
    """A thumb down offers reasons and pages, "Why?" shows the passages: both to this person only."""
    playground = await start_playground(f"{program.url}/api/messages")
    program.environment = {"FOOTNOTE_TEAMS_DEVELOPMENT": "true", "FOOTNOTE_RECEIPTS": "off"}
    place = program.home / "policies"
    place.mkdir(parents=True)
    (place / sop.name).write_bytes(sop.read_bytes())
    library = f'[library.policies]\n[[library.policies.folder]]\nlocation = "{place}"\n'
    (program.home / "folders.toml").write_text(f'{library}[direct_chats]\nlibrary = "policies"\n')
    async with program.serving():
        await program.until_live(LIBRARY, 1)
        await playground.say(PERSONAL, "when do backups run?")
        (card,) = await until(
            lambda: said_in(playground, PERSONAL, f'"{WORDS.why}"'), log=lambda: program.log
        )
        answer, *_ = await said_in(playground, PERSONAL, "[1]") or []
        button = card["attachments"][0]["content"]["body"][-1]["actions"][0]
        await playground.send(from_user(playground, PERSONAL, type="message", value=button["data"]))
        await until(lambda: said_in(playground, PERSONAL, "I searched for"), log=lambda: program.log)
        named = answer["entities"][-1]["streamId"]
        assert await invoked(program, from_user(playground, PERSONAL, **thumb(named))) == (200, "{}")
        (asked,) = await until(
            lambda: said_in(playground, PERSONAL, WORDS.what_was_wrong), log=lambda: program.log
        )
        *_, menu, reasons = asked["attachments"][0]["content"]["body"]
        assert sop.name in menu["choices"][0]["title"]
        (wrong_page,) = [one for one in reasons["actions"] if one["title"] == WORDS.wrong_page]
        chosen = wrong_page["data"] | {"page": menu["choices"][0]["value"]}
        await playground.send(from_user(playground, PERSONAL, type="message", value=chosen))
        await until(lambda: said_in(playground, PERSONAL, WORDS.feedback_thanks), log=lambda: program.log)
    (case,) = map(json.loads, program.run("feedback", "export").stdout.splitlines())
    assert (case["verdict"], case["documents"]) == ("wrong_page", [sop.name])
