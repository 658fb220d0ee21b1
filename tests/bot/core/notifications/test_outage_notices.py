"""Admins are told once of a part that does not work for a minute, and once that it works again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite

from bot.core.notifications.notification_wording import OUTAGE_HINT
from bot.core.notifications.receipts import announcement_paragraphs, write_receipt
from bot.web.readiness import LASTING_SECONDS, REASONS, OutageWatch, Readiness
from storage.chat.channels import Channels
from storage.chat.notification_events import SEEN_FOR, Outages
from storage.chat.notifications import Notices
from storage.chat_models import NoticeAudience
from storage.clock import clock_ahead, time_passed
from storage.errors import DatabaseUnavailable, IndexUnavailable
from storage.models import ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.leases import own_name

ADMINS = ChannelKey(Platform.SLACK, "T1", "C0ADMINS")
MINUTE = timedelta(seconds=LASTING_SECONDS)
# No process of this machine, so nobody knows whether it lives.
LONG_AGO = "machine-of-another:1:dead"


@dataclass
class Bot:
    """One process: what it is told of its parts, and what it keeps of that."""

    watch: OutageWatch
    # Parts that do not work.
    away: set[str]


@dataclass
class House:
    """Several bots on one database, and what its admins were told."""

    database: Database
    channel: int
    # Parts that no bot finds well.
    away: set[str] = field(default_factory=set)
    is_sql_away: bool = False

    def bot(self, name: str | None = None) -> Bot:
        """Return a process that was just started."""
        mine: set[str] = set()

        async def check(part: str) -> bool:
            if part == "sql" and self.is_sql_away:
                raise DatabaseUnavailable("another program keeps the database locked")
            if part == "index" and part in self.away | mine:
                raise IndexUnavailable("marmalade")
            return part not in self.away | mine

        async def keep(failing: object, ended: object) -> None:
            if self.is_sql_away:
                raise DatabaseUnavailable("another program keeps the database locked")
            await Outages(self.database, self.channel, name or bot).keep(failing, ended)  # type: ignore[arg-type]

        bot, parts = own_name(), ("sql", "index", "slack")
        checks = {part: (lambda part=part: check(part)) for part in parts}
        return Bot(OutageWatch(Readiness(checks), keep), mine)

    async def told(self) -> list[str]:
        """What one message says of all that waits; it waits no more."""
        notices = Notices(self.database)
        groups = await notices.waiting()
        assert {group.audience for group in groups} <= {NoticeAudience.ADMINS}
        batch = await notices.claim(groups, 60)
        receipt = write_receipt(batch, await notices.read(batch, 5), {}, {}, is_elsewhere=False)
        await notices.finish(batch, "posted")
        return announcement_paragraphs(receipt)[1:] if receipt else []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Where all is well."""
    database = await Database.open(make_sqlite(tmp_path))
    async with aclosing(database):
        yield House(database, (await Channels(database).ensure(ADMINS)).id)


async def test_admins_are_told_once_of_what_lasts_a_minute_and_once_of_its_end(house: House) -> None:
    """Shows that a short fault is told to nobody, and that neither message holds an error's words."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with time_passed(MINUTE / 2):
        await bot.watch.tick()
        house.away.clear()
        await bot.watch.tick()
        assert await house.told() == []
        house.away.add("index")
        await bot.watch.tick()
        with time_passed(MINUTE):
            await bot.watch.tick()
            (begun,) = await house.told()
            await bot.watch.tick()
            house.away.clear()
            for _ in range(2):
                await bot.watch.tick()
            (over,) = await house.told()
    assert begun.startswith("Not ready since ")
    assert begun.endswith(f" UTC: the index. The index does not answer.\n{OUTAGE_HINT}")
    assert over.startswith("Ready again: the index. Not ready from ")
    assert REASONS["index"] == "the index does not answer"
    assert "marmalade" not in begun + over


async def test_several_bots_tell_of_one_outage_once_and_of_its_end_when_the_last_is_well(
    house: House,
) -> None:
    """Shows that what one bot alone sees is not over while it does, and both together are one message."""
    first, second, third = house.bot(), house.bot(), house.bot()
    for bot in (first, second):
        bot.away.add("slack")
    for wait in (timedelta(), MINUTE):
        with time_passed(wait):
            for bot in (first, second, third):
                await bot.watch.tick()
    (begun,) = await house.told()
    assert "the connection to Slack" in begun
    with time_passed(MINUTE):
        first.away.clear()
        for bot in (first, second, third):
            await bot.watch.tick()
        assert await house.told() == []
        second.away.clear()
        for bot in (first, second, third):
            await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the connection to Slack")


async def test_a_bot_that_is_started_again_tells_nothing_twice(house: House) -> None:
    """Shows that an outage outlives the process that saw it, and ends with the first that finds all well."""
    bot = house.bot(LONG_AGO)
    house.away.add("index")
    await bot.watch.tick()
    with time_passed(MINUTE):
        await bot.watch.tick()
        assert len(await house.told()) == 1
        again = house.bot()
        await again.watch.tick()
        with time_passed(MINUTE):
            await again.watch.tick()
            assert await house.told() == []
            house.away.clear()
            await again.watch.tick()
            assert await house.told() == []  # the other one saw it a moment ago
            with time_passed(SEEN_FOR):
                await again.watch.tick()
                (over,) = await house.told()
    assert over.startswith("Ready again: the index")


async def test_while_sql_is_away_it_is_told_afterwards_once_by_all_bots(house: House) -> None:
    """Shows that an outage that could not be kept is told when it is over, from its beginning to its end."""
    first, second = house.bot(), house.bot()
    house.is_sql_away = True
    for wait in (timedelta(), MINUTE):
        with time_passed(wait):
            for bot in (first, second):
                with pytest.raises(DatabaseUnavailable):
                    await bot.watch.tick()
    house.is_sql_away = False
    with time_passed(2 * MINUTE):
        for _ in range(2):
            for bot in (first, second):
                await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the database. Not ready from ")
    assert over.endswith("Another program keeps the database locked.")


async def test_an_outage_that_ended_before_it_was_posted_is_one_message(house: House) -> None:
    """Shows that nobody reads of a fault that is over as if it lasted."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with time_passed(MINUTE):
        await bot.watch.tick()
        house.away.clear()
        await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the index")


async def test_a_clock_that_jumps_makes_no_outage_and_ends_none(house: House) -> None:
    """Shows that a minute is measured by a clock that nobody sets, and a bot that is gone counts no more."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with clock_ahead(timedelta(hours=2)):
        await bot.watch.tick()
    assert await house.told() == []
    house.away.clear()
    with clock_ahead(timedelta(hours=2)), time_passed(MINUTE):
        gone = house.bot(LONG_AGO)
        gone.away.add("slack")
        await gone.watch.tick()
        with time_passed(MINUTE):
            await gone.watch.tick()
            assert len(await house.told()) == 1
    await bot.watch.tick()  # the clock is right again: what counts for two hours more comes from a wrong one
    (over,) = await house.told()
    assert over.startswith("Ready again: the connection to Slack")
