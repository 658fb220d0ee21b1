"""Outage notices: admins get one after a minute of failure, and one after recovery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from harness.clocks import advance_clocks, shift_wall_clock
from harness.empty_homes import make_sqlite

from bot.chat.notifications.notification_wording import OUTAGE_HINT
from bot.chat.notifications.receipts import announcement_paragraphs, write_receipt
from bot.web.readiness import DEFAULT_REASONS, OUTAGE_SECONDS, OutageWatch, Readiness
from storage.chat.channels import Channels
from storage.chat.notification_events import REPORT_TTL, Outages
from storage.chat.notifications import Notices
from storage.chat_models import NoticeAudience
from storage.errors import DatabaseUnavailable, IndexUnavailable
from storage.models import ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.leased_queue import process_name

ADMINS = ChannelKey(Platform("slack"), "T1", "C0ADMINS")
MINUTE = timedelta(seconds=OUTAGE_SECONDS)
# A process of another machine, whose liveness is unknown.
LONG_AGO = "machine-of-another:1:dead"


@dataclass
class Bot:
    """A process with its outage watch."""

    watch: OutageWatch
    # Parts that fail for this process.
    away: set[str]


@dataclass
class House:
    """Several bots on one database, and the notices to their admins."""

    database: Database
    channel: int
    # Parts that fail for every bot.
    away: set[str] = field(default_factory=set)
    is_sql_away: bool = False

    def bot(self, name: str | None = None) -> Bot:
        """Return a process that was just started."""
        mine: set[str] = set()

        async def check(part: str) -> bool:
            if part == "sql" and self.is_sql_away:
                raise DatabaseUnavailable("the database is locked by another program")
            if part == "index" and part in self.away | mine:
                raise IndexUnavailable("marmalade")
            return part not in self.away | mine

        async def keep(failing: object, ended: object) -> None:
            if self.is_sql_away:
                raise DatabaseUnavailable("the database is locked by another program")
            await Outages(self.database, self.channel, name or bot).report(failing, ended)  # type: ignore[arg-type]

        bot, parts = process_name(), ("sql", "index", "slack")
        checks = {part: (lambda part=part: check(part)) for part in parts}
        return Bot(OutageWatch(Readiness(checks), keep), mine)

    async def told(self) -> list[str]:
        """Return and clear the texts of all pending notices."""
        notices = Notices(self.database)
        groups = await notices.waiting()
        assert {group.audience for group in groups} <= {NoticeAudience.ADMINS}
        batch = await notices.claim(groups, 60)
        receipt = write_receipt(batch, await notices.read(batch, 5), is_elsewhere=False)
        await notices.finish(batch, "posted")
        return announcement_paragraphs(receipt)[1:] if receipt else []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Yield a world without outages."""
    database = await Database.open(make_sqlite(tmp_path))
    async with aclosing(database):
        yield House(database, (await Channels(database).ensure(ADMINS)).id)


async def test_an_outage_of_a_minute_is_announced_with_its_end(house: House) -> None:
    """Shows that a short outage is not announced, and that no notice contains an error's text."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with advance_clocks(MINUTE / 2):
        await bot.watch.tick()
        house.away.clear()
        await bot.watch.tick()
        assert await house.told() == []
        house.away.add("index")
        await bot.watch.tick()
        with advance_clocks(MINUTE):
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
    assert DEFAULT_REASONS["index"] == "the index does not answer"
    assert "marmalade" not in begun + over


async def test_several_bots_announce_an_outage_and_its_end_once(
    house: House,
) -> None:
    """Shows that an outage lasts while any bot sees it, and that several outages are one message."""
    first, second, third = house.bot(), house.bot(), house.bot()
    for bot in (first, second):
        bot.away.add("slack")
    for wait in (timedelta(), MINUTE):
        with advance_clocks(wait):
            for bot in (first, second, third):
                await bot.watch.tick()
    (begun,) = await house.told()
    assert "the connection to Slack" in begun
    with advance_clocks(MINUTE):
        first.away.clear()
        for bot in (first, second, third):
            await bot.watch.tick()
        assert await house.told() == []
        second.away.clear()
        for bot in (first, second, third):
            await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the connection to Slack")


async def test_a_restarted_bot_repeats_no_notice(house: House) -> None:
    """Shows that an outage outlives its process, and ends with the first one that finds all parts healthy."""
    bot = house.bot(LONG_AGO)
    house.away.add("index")
    await bot.watch.tick()
    with advance_clocks(MINUTE):
        await bot.watch.tick()
        assert len(await house.told()) == 1
        again = house.bot()
        await again.watch.tick()
        with advance_clocks(MINUTE):
            await again.watch.tick()
            assert await house.told() == []
            house.away.clear()
            await again.watch.tick()
            assert await house.told() == []  # the other one saw it a moment ago
            with advance_clocks(REPORT_TTL):
                await again.watch.tick()
                (over,) = await house.told()
    assert over.startswith("Ready again: the index")


async def test_a_database_outage_is_announced_once_afterwards(house: House) -> None:
    """Shows that an outage that could not be stored is announced afterwards, with its start and end."""
    first, second = house.bot(), house.bot()
    house.is_sql_away = True
    for wait in (timedelta(), MINUTE):
        with advance_clocks(wait):
            for bot in (first, second):
                with pytest.raises(DatabaseUnavailable):
                    await bot.watch.tick()
    house.is_sql_away = False
    with advance_clocks(2 * MINUTE):
        for _ in range(2):
            for bot in (first, second):
                await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the database. Not ready from ")
    assert over.endswith("The database is locked by another program.")


async def test_an_outage_that_ended_before_posting_is_one_message(house: House) -> None:
    """Shows that an outage that is over is not announced as ongoing."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with advance_clocks(MINUTE):
        await bot.watch.tick()
        house.away.clear()
        await bot.watch.tick()
        (over,) = await house.told()
    assert over.startswith("Ready again: the index")


async def test_a_clock_jump_starts_and_ends_no_outage(house: House) -> None:
    """Shows that a minute is measured by the monotonic clock, and that a dead bot no longer counts."""
    bot = house.bot()
    house.away.add("index")
    await bot.watch.tick()
    with shift_wall_clock(timedelta(hours=2)):
        await bot.watch.tick()
    assert await house.told() == []
    house.away.clear()
    with shift_wall_clock(timedelta(hours=2)), advance_clocks(MINUTE):
        gone = house.bot(LONG_AGO)
        gone.away.add("slack")
        await gone.watch.tick()
        with advance_clocks(MINUTE):
            await gone.watch.tick()
            assert len(await house.told()) == 1
    await bot.watch.tick()  # with the correct clock, timestamps up to two hours ahead are from a wrong one
    (over,) = await house.told()
    assert over.startswith("Ready again: the connection to Slack")
