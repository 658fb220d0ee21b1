"""Sharing a private answer: once, by its asker while a member of the channel; and feedback on one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.core import WORDS
from fakes.slack_events import Signed

SECRET = "signing-secret-of-the-test"
ALICE, CHANNEL = "U0ALICE01", "C0ITOPS01"


@dataclass
class Slack:
    """Knows channel memberships and records the replies to response URLs."""

    url: str = ""
    members: list[str] = field(default_factory=lambda: [CHANNEL])
    refusal: str = ""
    replies: list[dict[str, Any]] = field(default_factory=list)
    # Statuses of the next replies; 0 cuts the connection after the reply was accepted.
    statuses: list[int] = field(default_factory=list)
    ephemeral: list[dict[str, Any]] = field(default_factory=list)

    async def api(self, request: web.Request) -> web.Response:
        """Handle ``users.conversations`` and ``chat.postEphemeral``."""
        if self.refusal:
            return web.json_response({"ok": False, "error": self.refusal})
        if request.match_info["method"] == "chat.postEphemeral":
            self.ephemeral.append(await request.json())
            return web.json_response({"ok": True})
        channels = [{"id": one, "name": "it-ops"} for one in self.members]
        return web.json_response({"ok": True, "channels": channels})

    async def reply(self, request: web.Request) -> web.StreamResponse:
        """Handle a response URL."""
        status = self.statuses.pop(0) if self.statuses else 200
        if status in (0, 200):
            self.replies.append(await request.json())
        if status == 0 and request.transport:
            request.transport.close()
        return web.Response(status=status or 200, text="ok")

    def shared(self) -> list[dict[str, Any]]:
        """Return the replies that were shown to the whole channel."""
        return [one for one in self.replies if one.get("response_type") == "in_channel"]


@dataclass(frozen=True)
class Desk:
    """An adapter in front of such a Slack, with a private question by Alice."""

    slack: Slack
    signed: Signed
    inbox: Any

    async def click(self, **changed: Any) -> int:
        """Post Alice's click on the share button and return the status."""
        (key,) = self.inbox.kept
        action = {"action_id": "share-answer", "block_id": "share", "value": key}
        return await self.signed.click(self.payload(action, **changed))

    def payload(self, action: dict[str, Any], **changed: Any) -> dict[str, Any]:
        """Return the payload of a click by Alice."""
        return {
            "type": "block_actions",
            "team": {"id": "T0ACME001"},
            "user": {"id": ALICE, "team_id": "T0ACME001"},
            "channel": {"id": CHANNEL},
            "container": {"type": "message", "channel_id": CHANNEL, "is_ephemeral": True},
            "response_url": f"{self.slack.url}/response",
            "actions": [action],
            **changed,
        }


@pytest.fixture
async def desk(new_inbox: Any, door_for: Any, settings_for: Any) -> AsyncIterator[Desk]:
    """Yield the desk on loopback; the question is already answered."""
    slack, inbox = Slack(), new_inbox()
    outside, inside = web.Application(), web.Application()
    outside.router.add_route("*", "/api/{method}", slack.api)
    outside.router.add_post("/response", slack.reply)
    async with AsyncExitStack() as stack:
        slack.url = str((await stack.enter_async_context(TestServer(outside))).make_url("")).rstrip("/")
        door = door_for(settings_for(f"{slack.url}/api/", slack_signing_secret=SECRET), inbox)
        door.add_routes(inside)
        server = await stack.enter_async_context(TestServer(inside))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        signed = Signed(session, str(server.make_url("")).rstrip("/"), SECRET)
        await signed.command(
            team_id="T0ACME001",
            channel_id=CHANNEL,
            user_id=ALICE,
            command="/footnote",
            text="when do backups run?",
            response_url=f"{slack.url}/response",
            trigger_id="13.17.abc",
        )
        yield Desk(slack, signed, inbox)
        await door.stop()


async def test_however_often_it_is_clicked_an_answer_is_shared_once(desk: Desk) -> None:
    """Two simultaneous clicks and a later one: the channel sees one answer, with asker and question."""
    assert await asyncio.gather(desk.click(), desk.click()) == [200, 200]
    assert await desk.click() == 200
    (shared,) = desk.slack.shared()
    assert f"<@{ALICE}>: when do backups run?" in shared["text"]
    assert "2:00 AM" in json.dumps(shared)


@pytest.mark.parametrize("is_silent", [False, True], ids=["left", "Slack does not say"])
async def test_a_person_who_left_the_channel_cannot_share(desk: Desk, is_silent: bool) -> None:
    """The person gets an ephemeral notice, and may share after rejoining the channel."""
    desk.slack.members = [CHANNEL] if is_silent else ["C0HRTEAM1"]
    desk.slack.refusal = "missing_scope" if is_silent else ""
    assert await desk.click() == 200
    assert desk.slack.shared() == []
    (said,) = desk.slack.replies
    assert (said["text"], said["response_type"]) == (WORDS.not_shared, "ephemeral")
    desk.slack.members, desk.slack.refusal = [CHANNEL], ""
    await desk.click()
    assert len(desk.slack.shared()) == 1


async def test_only_the_asker_shares_and_only_in_the_channel(desk: Desk) -> None:
    """Clicks by another person or from another channel share nothing."""
    for changed in ({"user": {"id": "U0BOB0001"}}, {"channel": {"id": "C0HRTEAM1"}}):
        await desk.click(**changed)
    assert desk.slack.replies == []


async def test_a_refused_share_is_retried_but_an_unclear_one_is_not(desk: Desk) -> None:
    """A refusal showed nothing; after a broken connection the answer may already be in the channel."""
    desk.slack.statuses = [404]
    assert await desk.click() == 503
    desk.slack.statuses = [0]
    assert await desk.click() == 503
    assert await desk.click() == 200
    assert len(desk.slack.shared()) == 1


async def test_an_undeleted_private_answer_is_not_shared_twice(desk: Desk) -> None:
    """Failing to delete the ephemeral message does not undo the share."""
    desk.slack.statuses = [200, 500]
    assert await desk.click() == 200
    assert await desk.click() == 200
    assert len(desk.slack.shared()) == 1


@pytest.mark.parametrize(
    ("user", "is_member", "has_links"),
    [(ALICE, False, True), ("U0BOB0001", True, True), ("U0BOB0001", False, False)],
    ids=["asker", "member", "stranger"],
)
async def test_new_links_are_for_the_asker_and_for_members(
    desk: Desk, user: str, is_member: bool, has_links: bool
) -> None:
    """A click on a source that has ended shows the sources again, to the asker and to members only."""
    desk.slack.members = [CHANNEL] if is_member else ["C0HRTEAM1"]
    (key,) = desk.inbox.kept
    block = {"block_id": f"feedback:sl_T0ACME001_{CHANNEL}", "action_id": "source-1"}
    clicked = desk.payload(block | {"value": f"links en {key}"}) | {"user": {"id": user}}
    for url in ("https://kept.example/v/live", "https://kept.example/v/ended"):
        button = {"action_id": "source-1", "url": url}
        clicked |= {"message": {"blocks": [{"elements": [button]}]}}
        assert await desk.signed.click(clicked) == 200
    (said,) = desk.slack.ephemeral
    assert said["user"] == user
    assert said["text"].startswith("Here are new links for the answer to" if has_links else WORDS.no_sources)
    assert (f"https://kept.example/v/1-{key}" in json.dumps(said)) is has_links


@pytest.mark.parametrize("is_member", [True, False])
async def test_private_feedback_is_answered_without_membership(desk: Desk, is_member: bool) -> None:
    """Slack then accepts replies to the click's response URL only."""
    desk.slack.refusal = "" if is_member else "not_in_channel"
    (key,) = desk.inbox.kept
    block = {"block_id": f"feedback:sl_T0ACME001_{CHANNEL}", "action_id": "feedback-bad"}
    assert await desk.signed.click(desk.payload(block | {"value": f"bad en {key}"})) == 200
    assert [one[0] for one in desk.inbox.feedback.said] == [key]
    said = desk.slack.ephemeral if is_member else desk.slack.replies
    assert [one["text"] for one in said] == ["What was wrong?"]
    assert len(desk.slack.ephemeral) + len(desk.slack.replies) == 1
    assert "feedback-wrong_page" in json.dumps(said)
