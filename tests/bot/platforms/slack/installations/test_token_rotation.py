"""Token rotation: one process refreshes an expiring token; each refresh token is valid once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fakes.oauth_slack import CLIENT_ID, CLIENT_SECRET, OAuthSlack
from harness.clocks import shift_wall_clock
from harness.oauth_house import House
from harness.waiting import until_true
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator

from bot.answers.citations.signed_links import KeyRing
from bot.platforms.slack.installations.token_cipher import TokenCipher
from bot.platforms.slack.installations.workspaces import LEASE_SECONDS, InstalledWorkspaces
from bot.platforms.slack.web_api import NotInstalled, TokenUnavailable, web_client
from storage.clock import utc_now
from storage.installations.slack_installations import SlackInstallations
from storage.sql.database import Database

ACME, BETA = "T0ACME001", "T0BETA001"
SOON, PAST = timedelta(minutes=119), timedelta(minutes=-1)
PROCESSES = 3

# slack_sdk sends the client secret with BasicAuth
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")


@pytest.fixture
async def processes(house: House, slack: OAuthSlack) -> AsyncIterator[list[InstalledWorkspaces]]:
    """Yield several processes on one home, each with connections of its own."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(PROCESSES):
            database = await Database.open(f"sqlite:///{house.home / 'footnote.db'}")
            stack.push_async_callback(database.aclose)
            rotator = AsyncTokenRotator(
                client_id=CLIENT_ID, client_secret=CLIENT_SECRET, client=web_client("", slack.api_url)
            )
            cipher = TokenCipher(house.home / "token_keys.json")
            opened.append(InstalledWorkspaces(SlackInstallations(database), cipher, rotator, slack.api_url))
            stack.push_async_callback(opened[-1].aclose)
        yield opened


async def token_of(workspaces_: InstalledWorkspaces, installation: str = ACME) -> str:
    """Return the token that a client of this installation sends."""
    return str((await workspaces_.client_for(installation)).token)


def refreshes(slack: OAuthSlack) -> list[str]:
    """Return the refresh tokens that were exchanged, in order."""
    return [given for given in slack.exchanges if given.startswith("xoxe-")]


async def test_a_token_is_renewed_two_hours_before_it_ends(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces]
) -> None:
    """No refresh happens earlier; afterwards every process uses the new token for twelve hours."""
    await house.install(ACME)
    first = await token_of(processes[0])
    assert refreshes(slack) == []
    await house.end_token(ACME, SOON)
    second = await token_of(processes[0])
    assert second != first
    assert {await token_of(one) for one in processes} == {second}
    assert len(refreshes(slack)) == 1
    held = await house.installations.get(ACME)
    assert held is not None
    assert held.expires_at is not None
    assert timedelta(hours=11, minutes=59) < held.expires_at - utc_now() <= timedelta(hours=12)


@pytest.mark.parametrize("left", [SOON, PAST])
async def test_concurrent_callers_refresh_a_token_once(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces], left: timedelta
) -> None:
    """During the refresh callers use the old token while it is valid, and wait once it has expired."""
    await house.install(ACME)
    first = await token_of(processes[0])
    await house.end_token(ACME, left)
    slack.gate.clear()
    calls = [asyncio.create_task(token_of(one)) for one in processes * 10]
    await until_true(lambda: refreshes(slack))
    await until_true(lambda: left is PAST or any(one.done() for one in calls))
    slack.gate.set()
    found = set(await asyncio.gather(*calls))
    assert len(refreshes(slack)) == 1
    newest = await token_of(processes[0])
    assert found == ({first, newest} if left is SOON else {newest})
    assert newest != first


async def test_each_refresh_token_is_used_once(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces]
) -> None:
    """Refreshes follow one another, each by any process, with the refresh token of the previous one."""
    await house.install(ACME)
    tokens = {await token_of(processes[0])}
    for turn in range(6):
        await house.end_token(ACME, PAST)
        tokens.add(await token_of(processes[turn % PROCESSES]))
    assert len(tokens) == 7
    assert len(set(refreshes(slack))) == len(refreshes(slack)) == 6


async def test_a_cancelled_caller_does_not_abort_a_refresh(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces]
) -> None:
    """A caller that times out does not lose the new token: it is stored all the same."""
    await house.install(ACME)
    await house.end_token(ACME, PAST)
    slack.gate.clear()
    leaving = asyncio.create_task(token_of(processes[0]))
    await until_true(lambda: refreshes(slack))
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    slack.gate.set()
    await processes[0].aclose()
    assert slack.tokens[await token_of(processes[1])] == ACME
    assert len(refreshes(slack)) == 1


async def test_a_refused_refresh_is_reported_and_the_old_token_used(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces], caplog: pytest.LogCaptureFixture
) -> None:
    """After expiry nothing can be sent until the workspace installs the app again."""
    await house.install(ACME)
    first = await token_of(processes[0])
    await house.end_token(ACME, SOON)
    slack.refreshers.clear()
    assert {await token_of(one) for one in processes} == {first}
    assert len(refreshes(slack)) == 1
    held = await house.installations.get(ACME)
    assert held is not None
    assert held.problem == "Slack rejected the token renewal (invalid_refresh_token)"
    assert "reinstall the app in that workspace" in caplog.text
    await house.installations.save(replace(held, expires_at=datetime.now(UTC) + PAST))
    for one in processes:
        with pytest.raises(TokenUnavailable):
            await one.client_for(ACME)
    await house.install(ACME)
    assert await token_of(processes[0]) != first
    assert "CANARY" not in caplog.text


async def test_a_refresh_is_retried_after_a_slack_outage(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces]
) -> None:
    """A timeout is no refusal: the next refresh succeeds."""
    await house.install(ACME)
    await house.end_token(ACME, PAST)
    slack.is_down = True
    with pytest.raises(TokenUnavailable):
        await processes[0].client_for(ACME)
    held = await house.installations.get(ACME)
    assert held is not None
    assert held.problem is None
    slack.is_down = False
    with shift_wall_clock(timedelta(seconds=LEASE_SECONDS)):
        assert slack.tokens[await token_of(processes[1])] == ACME


async def test_an_app_removed_during_a_refresh_stays_removed(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces]
) -> None:
    """The token that arrives after the removal is not stored."""
    await house.install(ACME)
    await house.end_token(ACME, PAST)
    slack.gate.clear()
    asking = asyncio.create_task(processes[0].client_for(ACME))
    await until_true(lambda: refreshes(slack))
    assert await house.send({"type": "app_uninstalled"}, ACME) == 200
    slack.gate.set()
    with pytest.raises(NotInstalled):
        await asking
    assert await house.installations.all() == []


async def test_an_encrypted_token_opens_for_its_own_installation_only(
    house: House, processes: list[InstalledWorkspaces]
) -> None:
    """A stored token copied to another workspace's row, or opened with another home's key, is unreadable."""
    for team in (ACME, BETA):
        await house.install(team)
    acme, beta = await house.installations.get(ACME), await house.installations.get(BETA)
    assert acme is not None
    assert beta is not None
    await house.installations.save(replace(beta, sealed=acme.sealed))
    with pytest.raises(TokenUnavailable):
        await processes[0].client_for(BETA)
    assert ACME in await token_of(processes[0])
    (house.home / "token_keys.json").unlink()
    with pytest.raises(TokenUnavailable):
        await processes[0].client_for(ACME)


async def test_tokens_are_re_encrypted_with_the_newest_key(
    house: House, processes: list[InstalledWorkspaces]
) -> None:
    """After two key rotations with a restart in between, tokens encrypted with the first key still open."""
    await house.install(ACME)
    token = await token_of(processes[0])
    ring = KeyRing(house.home / "token_keys.json")
    for _ in range(2):
        ring.rotate()
        await processes[0].start()
        assert await token_of(processes[1]) == token
    ring.rotate()
    ring.rotate()
    await processes[0].start()
    with pytest.raises(TokenUnavailable):
        await processes[0].client_for(ACME)


@pytest.mark.parametrize("lifetime", [None])
async def test_a_token_that_never_ends_is_never_renewed(
    house: House, slack: OAuthSlack, processes: list[InstalledWorkspaces], lifetime: Any
) -> None:
    """Apps without token rotation have such tokens."""
    slack.lifetime = lifetime
    await house.install(ACME)
    assert slack.tokens[await token_of(processes[0])] == ACME
    assert refreshes(slack) == []
