"""Each workspace is served with its own token until it removes the app; then its data is purged."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from fakes.oauth_slack import ORGANISATION, OAuthSlack
from harness.oauth_house import CHANNEL, House
from harness.waiting import until

ACME, BETA = "T0ACME001", "T0BETA001"
QUESTIONS = 10

# slack_sdk sends the client secret with BasicAuth
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")


def written(slack: OAuthSlack, team: str) -> list[str]:
    """Return all request bodies sent with a workspace's token, as text."""
    return [str(one.body) for one in slack.calls_of(team)]


def database_of(house: House) -> bytes:
    """Return the bytes of SQLite's files in a home."""
    return b"".join(path.read_bytes() for path in house.home.glob("footnote.db*"))


async def is_checkpointed(house: House) -> bool:
    """Checkpoint SQLite's write-ahead log; True unless a reader prevents it."""
    with closing(sqlite3.connect(house.home / "footnote.db")) as connection:
        (is_busy, *_), *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return not is_busy


async def test_no_workspace_is_ever_served_with_anothers_token(house: House, slack: OAuthSlack) -> None:
    """Two workspaces ask at once in channels of the same id: each call has its own token."""
    for team in (ACME, BETA):
        await house.install(team)
    asked = [(team, f"17000000{n:02}.000100") for n in range(QUESTIONS) for team in (ACME, BETA)]
    await asyncio.gather(*(house.ask(team, ts) for team, ts in asked))
    assert await house.until_ended(2 * QUESTIONS) == [("done", None)] * 2 * QUESTIONS
    for team, other in ((ACME, BETA), (BETA, ACME)):
        answers = slack.called("chat.update", team)
        assert len(answers) == QUESTIONS
        assert all(f"For sl_{team}_{CHANNEL}." in answer["text"] for answer in answers)
        assert len(slack.called("chat.postMessage", team)) == QUESTIONS
        assert not [text for text in written(slack, team) if other in text]
    assert slack.refused == []


async def test_names_homes_and_notices_use_their_workspaces_token(house: House, slack: OAuthSlack) -> None:
    """Channel names, App Homes and notices to outsiders use the token of their event's workspace."""
    for team in (ACME, BETA):
        await house.install(team)
    slack.calls.clear()
    await house.ask(ACME, "1700000001.000100", is_ext_shared_channel=True, channel="C0SHARED1")
    stranger = {
        "type": "app_mention",
        "user": "U0OTHER01",
        "user_team": "T0OTHER01",
        "channel": "C0SHARED1",
        "ts": "1700000002.000100",
        "text": "when?",
    }
    assert await house.send(stranger, ACME, is_ext_shared_channel=True) == 200
    opened = {"type": "app_home_opened", "user": "U0ALICE01", "channel": "D0ALICE01"}
    assert await house.send({**opened, "tab": "home"}, ACME) == 200
    assert await house.send({**opened, "tab": "messages"}, ACME) == 200
    wanted = {
        "chat.postEphemeral",
        "conversations.info",
        "users.conversations",
        "views.publish",
        "assistant.threads.setSuggestedPrompts",
        "chat.update",
    }

    async def all_sent() -> bool:
        return wanted <= {one.method for one in slack.calls}

    await until(all_sent, log=lambda: str({one.method for one in slack.calls}))
    assert {one.installation for one in slack.calls} == {ACME}


async def test_a_workspace_without_the_app_is_sent_nothing(house: House, slack: OAuthSlack) -> None:
    """The question of such a workspace fails and is not retried."""
    await house.install(BETA)
    slack.calls.clear()
    await house.ask(ACME, "1700000001.000100")
    assert await house.until_ended(1) == [("failed", "AppUninstalled")]
    assert (slack.calls, slack.refused) == ([], [])


REMOVALS: list[Any] = [
    pytest.param({"type": "app_uninstalled"}, id="app removed"),
    pytest.param({"type": "tokens_revoked", "tokens": {"bot": ["U0BOT"], "oauth": []}}, id="token revoked"),
]


@pytest.mark.parametrize("event", REMOVALS)
async def test_a_workspace_that_removes_the_app_is_purged_at_once(
    house: House, slack: OAuthSlack, event: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Erases its tokens, also from the file, and ends pending answers; the other workspace keeps working."""
    for team in (ACME, BETA):
        await house.install(team)
    held = await house.installations.get(ACME)
    assert held is not None
    assert held.sealed in database_of(house)
    house.answers.gate.clear()
    for team in (ACME, BETA):
        await house.ask(team, "1700000001.000100")

    async def is_placed() -> bool:
        return all(slack.called("chat.postMessage", team) for team in (ACME, BETA))

    await until(is_placed)
    assert await house.send(event, ACME) == 200
    sent = len(written(slack, ACME))
    house.answers.gate.set()
    assert sorted(await house.until_ended(2), key=str) == [("done", None), ("failed", "AppUninstalled")]
    await house.ask(ACME, "1700000002.000100")
    assert (await house.until_ended(3))[2] == ("failed", "AppUninstalled")
    assert len(written(slack, ACME)) == sent
    assert [one.installation for one in await house.installations.all()] == [BETA]
    assert f"Workspace {ACME} ({ACME}) uninstalled the app: tokens deleted" in caplog.text
    assert "CANARY" not in caplog.text
    await until(partial(is_checkpointed, house))
    assert held.sealed not in database_of(house)


@pytest.mark.parametrize("event", REMOVALS)
async def test_an_event_older_than_the_installation_removes_nothing(
    house: House, event: dict[str, Any]
) -> None:
    """Slack may deliver it late or again, after the workspace has reinstalled the app."""
    await house.install(ACME)
    assert await house.send(event, ACME, event_time=int(time.time()) - 2) == 200
    assert [one.installation for one in await house.installations.all()] == [ACME]


async def test_a_revoked_user_token_is_not_the_bots(house: House) -> None:
    """A person who revokes their own grant affects no one else."""
    await house.install(ACME)
    event = {"type": "tokens_revoked", "tokens": {"bot": [], "oauth": ["U0ALICE01"]}}
    assert await house.send(event, ACME) == 200
    assert [one.installation for one in await house.installations.all()] == [ACME]


async def test_an_organisation_that_removes_the_app_is_purged_as_one(house: House) -> None:
    """The event may name any workspace; one with an installation of its own keeps it."""
    for installation in (ORGANISATION, ACME):
        await house.install(installation)
    organisation = {"enterprise_id": ORGANISATION, "team_id": ACME, "is_enterprise_install": True}
    assert await house.send({"type": "app_uninstalled"}, ACME, authorizations=[organisation]) == 200
    assert [one.installation for one in await house.installations.all()] == [ACME]


async def test_an_event_without_authorizations_is_for_its_team_id(house: House) -> None:
    """Slack names no authorizations once the app is removed."""
    for team in (ACME, BETA):
        await house.install(team)
    assert await house.send({"type": "app_uninstalled"}, ACME, authorizations=[]) == 200
    assert [one.installation for one in await house.installations.all()] == [BETA]


async def test_a_workspace_may_come_back(house: House, slack: OAuthSlack) -> None:
    """A reinstalled workspace has a new token and the same channels."""
    await house.install(ACME)
    assert await house.send({"type": "app_uninstalled"}, ACME) == 200
    await house.install(ACME)
    await house.ask(ACME, "1700000001.000100")
    assert await house.until_ended(1) == [("done", None)]
    assert len(slack.called("chat.update", ACME)) == 1
