"""Slack installations on both engines: one renewal at a time, and no older token wins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from harness.clocks import shift_wall_clock

from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.installations.slack_installations import SlackInstallation, SlackInstallations
from storage.models import ChannelKey, Platform
from storage.sql.database import Database

ACME = "T0ACME001"


def installed(sealed: bytes = b"sealed", installation: str = ACME) -> SlackInstallation:
    """Return an installation made just now."""
    return SlackInstallation(installation, "Acme", "U0BOT", sealed, utc_now(), utc_now())


@pytest.fixture
def installations(database: Database) -> SlackInstallations:
    """The store of an empty home."""
    return SlackInstallations(database)


async def test_an_installation_replaces_the_previous_one(installations: SlackInstallations) -> None:
    """Clears the problem recorded for the old token."""
    assert await installations.get(ACME) is None
    first, second = installed(), installed(b"other")
    await installations.save(first)
    await installations.note_problem(first, "refused")
    assert await installations.get(ACME) == replace(first, problem="refused")
    assert await installations.begin_renewal(first, 30)
    await installations.save(second)
    assert await installations.all() == [second]
    assert await installations.begin_renewal(second, 30)


async def test_one_process_renews_a_token(installations: SlackInstallations) -> None:
    """The lease lasts until the renewal is done or times out; a late holder of old tokens is refused."""
    held = installed()
    await installations.save(held)
    taken = await asyncio.gather(*(installations.begin_renewal(held, 30) for _ in range(8)))
    assert taken.count(True) == 1
    with shift_wall_clock(timedelta(seconds=31)):
        assert await installations.begin_renewal(held, 30)
    assert await installations.renew(held, b"new", None)
    assert not await installations.begin_renewal(held, 30)
    assert not await installations.renew(held, b"late", None)
    await installations.note_problem(held, "late")
    assert await installations.get(ACME) == replace(held, sealed=b"new", expires_at=None)


async def test_a_renewal_lease_from_a_fast_clock_is_ignored(installations: SlackInstallations) -> None:
    """A lease longer than the maximum does not block renewals."""
    held = installed()
    await installations.save(held)
    with shift_wall_clock(timedelta(days=1)):
        assert await installations.begin_renewal(held, 30)
    assert await installations.begin_renewal(held, 30)


async def test_erasing_spares_a_newer_installation(installations: SlackInstallations) -> None:
    """A renewal that ends after the erasure restores nothing."""
    held = installed()
    await installations.save(held)
    await installations.save(installed(installation="T0BETA001"))
    assert await installations.erase(ACME, held.installed_at - timedelta(seconds=1)) is None
    assert await installations.erase(ACME, held.installed_at) == held
    assert await installations.erase(ACME, utc_now()) is None
    assert not await installations.renew(held, b"new", None)
    assert [one.installation for one in await installations.all()] == ["T0BETA001"]


async def test_uninstalling_leaves_the_channels_of_the_workspace(database: Database) -> None:
    """Other workspaces are unaffected; a new question joins the channel again."""
    installations, channels = SlackInstallations(database), Channels(database)
    await installations.save(installed())
    keys = [ChannelKey(Platform("slack"), team, "C1") for team in (ACME, "T0ACME0012", "T0BETA001")]
    made = [await channels.ensure(key) for key in keys]
    assert await installations.erase(ACME, utc_now())
    assert [one.id for one in await channels.left_before(utc_now())] == [made[0].id]
    await channels.ensure(keys[0])
    assert await channels.left_before(utc_now()) == []
