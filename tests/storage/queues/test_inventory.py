"""Inventory of index and blobs against SQL, for any number of names."""

import asyncio
import threading
from pathlib import Path
from uuid import UUID

from storage.chat.channels import Channels
from storage.documents.arrivals import Arrivals
from storage.documents.identity import Arrival
from storage.files.blobs import Blobs
from storage.folders.folders import Folders
from storage.models import ChannelKey, Platform
from storage.queues.inventory import Inventory
from storage.queues.planner import Generations
from storage.sql.database import Database
from storage.sql.tables import FactRow

# More than the parameters that PostgreSQL accepts in one statement.
MANY = 70_000


async def test_more_orphaned_publications_than_sql_parameters(database: Database) -> None:
    """Shows that the index can be cleared after the database was lost."""
    held = {UUID(int=number) for number in range(MANY)}
    assert await Inventory(database).orphans(held) == held


class CountingBlobs(Blobs):
    """A blob store that records removals."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.removed: list[str] = []

    def remove(self, sha256: str) -> None:
        """Record the removal."""
        self.removed.append(sha256)


async def test_more_orphaned_blobs_than_sql_parameters(database: Database, tmp_path: Path) -> None:
    """Shows that blobs can be swept after the database was lost."""
    blobs = CountingBlobs(tmp_path / "blobs")
    names = [f"{number:064x}" for number in range(MANY)]
    assert await Inventory(database).drop_orphans(names, blobs) == MANY
    assert sorted(blobs.removed) == names


class SlowBlobs(Blobs):
    """A blob store whose removals block until released."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.is_removing, self.may_go_on = threading.Event(), threading.Event()

    def remove(self, sha256: str) -> None:
        """Wait until released, then remove."""
        self.is_removing.set()
        assert self.may_go_on.wait(60)
        super().remove(sha256)


async def test_a_slow_removal_blocks_arrivals_but_no_writer(database: Database, tmp_path: Path) -> None:
    """Shows that blobs are removed outside any transaction, and that an arrival waits for the removal."""
    blobs = SlowBlobs(tmp_path / "blobs")
    sweeping = asyncio.create_task(Inventory(database).drop_orphans(["ab" * 32], blobs))
    assert await asyncio.to_thread(blobs.is_removing.wait, 60)
    async with database.transaction() as session:
        session.add(FactRow(name="written", value="meanwhile"))
    arriving = asyncio.create_task(_arrive(blobs))
    await asyncio.sleep(0.05)
    assert not arriving.done()
    blobs.may_go_on.set()
    assert await sweeping == 1
    assert await arriving


async def test_a_slow_arrival_blocks_no_writer(database: Database, tmp_path: Path) -> None:
    """Shows that the file I/O of an arrival precedes its transaction."""
    blobs, is_keeping, may_go_on = Blobs(tmp_path / "blobs"), threading.Event(), threading.Event()

    def keep() -> None:
        is_keeping.set()
        assert may_go_on.wait(60)

    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "it"))
    folder = await Folders(database).ensure(channel.id, "/inbox/it", watched=True, origin="inbox")
    arrivals = Arrivals(database, Generations(quick="g1", full=None), blobs)
    storing = asyncio.create_task(arrivals.store(folder, [Arrival("a.pdf", {}, "ab" * 32, 1, keep)], None))
    assert await asyncio.to_thread(is_keeping.wait, 60)
    async with database.transaction() as session:
        session.add(FactRow(name="written", value="meanwhile"))
    may_go_on.set()
    assert [one.outcome for one in await storing] == ["new"]


async def _arrive(blobs: Blobs) -> bool:
    async with blobs.adding():
        return True
