"""A blob store belongs to one home, and a home to one store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from storage.errors import BlobsUnavailable, ChangedBlobs
from storage.files.object_store import ObjectStore
from storage.files.store_owner import BLOBS_FACT, OWNER_FILE, claim_store, require_own_store
from storage.sql.database import Database
from storage.sql.tables import FactRow


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An empty store in a folder."""
    return ObjectStore(f"file://{tmp_path}/store", BlobsUnavailable, "the blob store")


async def test_another_home_and_another_store_are_refused(database: Database, store: ObjectStore) -> None:
    """Shows that an empty store is claimed by the first home, even when machines start at once."""
    await require_own_store(database, None)
    await asyncio.gather(*(require_own_store(database, store) for _ in range(3)))
    await require_own_store(database, store)
    with pytest.raises(ChangedBlobs, match="set it back"):
        await require_own_store(database, None)
    async with database.transaction() as session:
        await session.delete(await session.get_one(FactRow, BLOBS_FACT))
    with pytest.raises(ChangedBlobs, match="another home"):
        await require_own_store(database, store)
    await claim_store(database, store)
    await require_own_store(database, store)


async def test_an_empty_store_in_place_of_ours_is_an_outage(
    database: Database, store: ObjectStore, tmp_path: Path
) -> None:
    """Shows that PDFs do not count as lost while a share is unmounted."""
    await require_own_store(database, store)
    (tmp_path / "store").rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(BlobsUnavailable, match="missing or empty"):
            await require_own_store(database, store)
    assert store.read(OWNER_FILE) is None
    (tmp_path / "away").rename(tmp_path / "store")
    await require_own_store(database, store)


async def test_a_read_only_store_leaves_the_home_unclaimed(database: Database, tmp_path: Path) -> None:
    """Shows that a home whose first store was mistyped starts without one."""
    missing = ObjectStore(f"dir://missing::file://{tmp_path}", BlobsUnavailable, "the blob store")
    with pytest.raises(BlobsUnavailable, match="no such bucket"):
        await require_own_store(database, missing)
    await require_own_store(database, None)
