"""Link keys in SQL: one machine signs and another verifies, and new keys are known at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness.empty_homes import make_sqlite

from bot.answers.citations.shared_keys import HELD_SECONDS, SharedKeyRing
from bot.answers.citations.signed_links import KeyRing, Links
from bot.core.errors import LinkForged
from storage.clock import utc_now
from storage.errors import DatabaseUnavailable
from storage.installations.link_keys import LinkKeyStore, StoredLinkKey
from storage.models import Channel, ChannelKey, CitationRecord, Platform
from storage.sql.audit import AuditLog
from storage.sql.database import Database

KEY = ChannelKey(Platform.LOCAL, "", "it")
CHANNEL = Channel(1, KEY.tenant, KEY.platform, "it", epoch=0)
QUOTE = CitationRecord(1, CHANNEL.id, 1, 1, "A quote.", (), utc_now())
LATER = timedelta(hours=1)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engine("postgres"))])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """Yield a fresh database, of each engine in turn."""
    is_server = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if is_server else make_sqlite(tmp_path / "sql")
    opened = await Database.open(url)
    yield opened
    await opened.aclose()


class Machine:
    """A process with its own cached keys and clock."""

    def __init__(self, ring: SharedKeyRing) -> None:
        self.ring = ring
        self.links = Links(ring, "https://docs.example.org", timedelta(days=7), lambda: datetime.now(UTC))

    @classmethod
    async def start(cls, database: Database) -> Machine:
        """Start a process that has only the database."""
        return cls(await SharedKeyRing.open(LinkKeyStore(database)))

    def sign(self) -> str:
        """Return the token of a new link."""
        return self.links.page_url(CHANNEL, QUOTE).rpartition("/")[2]

    def opens(self, token: str) -> bool:
        """True if this process verifies a token."""
        try:
            self.links.read(token)
        except LinkForged:
            return False
        return True


class BusyStore(LinkKeyStore):
    """Counts reads and delays or fails them."""

    def __init__(self, store: LinkKeyStore) -> None:
        self._store = store
        self.asked = 0
        self.is_away = False

    async def keys(self) -> list[StoredLinkKey]:
        """Return the keys of the wrapped store."""
        self.asked += 1
        await asyncio.sleep(0.01)
        if self.is_away:
            raise DatabaseUnavailable("away")
        return await self._store.keys()


async def test_a_machine_opens_what_another_one_signed(database: Database) -> None:
    """Shows that machines that start simultaneously agree on one key."""
    machines = await asyncio.gather(*(Machine.start(database) for _ in range(3)))
    assert all(one.opens(other.sign()) for one in machines for other in machines)


async def test_a_new_key_is_known_to_every_process(database: Database) -> None:
    """Shows a key rotated by another process, links of the previous key, and the audit entry."""
    one, other = [await Machine.start(database) for _ in range(2)]
    before = one.sign()
    await one.ring.rotate("local")
    assert not other.opens(one.sign()), "it has not read the keys again"
    await asyncio.sleep(HELD_SECONDS)
    await other.links.refresh_keys()
    assert other.opens(one.sign())
    assert other.opens(before)
    assert other.ring.keys() == one.ring.keys()
    assert [(entry.actor, entry.action) for entry in await AuditLog(database).latest()] == [
        ("local", "rotate key")
    ]


async def test_rotating_twice_ends_every_link(database: Database) -> None:
    """Shows that a retired key verifies on no machine, and that key ids restart."""
    one, other = [await Machine.start(database) for _ in range(2)]
    before = one.sign()
    for _ in range(2):
        await one.ring.rotate("local")
    await asyncio.sleep(HELD_SECONDS)
    await other.ring.refresh()
    assert [machine.opens(before) for machine in (one, other)] == [False, False]
    assert other.opens(one.sign())
    first = one.ring.keys()
    for _ in range(254):
        await one.ring.rotate("local")
    assert {key.id for key in one.ring.keys()} == {0, 1}
    assert not {key.secret for key in first} & {key.secret for key in one.ring.keys()}


async def test_many_forged_links_ask_sql_once(database: Database) -> None:
    """Concurrent requests share one read; if it fails, the known keys stay in use."""
    machine = await Machine.start(database)
    store = BusyStore(LinkKeyStore(database))
    ring = SharedKeyRing(store, await store.keys())
    token = machine.sign()
    for is_away in (False, True):
        store.is_away, store.asked = is_away, 0
        await asyncio.sleep(HELD_SECONDS)
        ended = await asyncio.gather(*(ring.refresh() for _ in range(50)), return_exceptions=True)
        assert store.asked == 1
        assert [type(one) for one in ended if one] == [DatabaseUnavailable] * is_away
    assert Machine(ring).opens(token)


def test_a_mounted_file_is_only_read(tmp_path: Path) -> None:
    """Shows that a missing file is not created, and that a replaced file is noticed."""
    place = tmp_path / "mounted.json"
    with pytest.raises(FileNotFoundError):
        KeyRing(place, is_ours=False).keys()
    assert not place.exists()
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    rings = [KeyRing(file) for file in files]
    made = [ring.keys() for ring in rings]
    place.symlink_to(files[0])
    mounted = KeyRing(place, is_ours=False)
    assert mounted.keys() == made[0]
    place.unlink()
    place.symlink_to(files[1])
    assert mounted.keys() == made[1]
