"""Pairs a home with the object storage of its blobs, so that no two homes share one.

Each of two homes in one store would remove the other's blobs as unreferenced. A file in the store and a fact
in SQL hold the same name; machines that share the database share the store.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from uuid import uuid4

from storage.errors import BlobsUnavailable, ChangedBlobs
from storage.files.object_store import ObjectStore
from storage.sql.database import Database
from storage.sql.tables import FactRow
from storage.threads import run_in_thread

OWNER_FILE = "footnote-home.txt"
# Facts that no other home may take over.
BLOBS_FACT, KEY_FACT = "blobs", "blobs key"
_OWNER_BYTES = 1024
_ELSEWHERE = (
    "FOOTNOTE_BLOBS was changed, but this home's PDFs are in the previous store: set it back, or move them "
    "with `footnote backup` and `footnote restore`"
)
_TAKEN = (
    "the store at FOOTNOTE_BLOBS belongs to another home: choose an empty prefix. If that home no longer "
    f"exists and nothing else is stored there, delete its {OWNER_FILE}"
)
_MISSING = (
    "the store at FOOTNOTE_BLOBS is missing or empty and does not contain this home's PDFs: correct "
    "FOOTNOTE_BLOBS, or mount the store; if the PDFs are lost, `footnote restore` a backup"
)
# Longer than the time between another machine's two steps of claiming a store.
_STARTING_SECONDS = 0.1


async def store_fault(database: Database, store: ObjectStore | None) -> str | None:
    """Return why the store cannot be this home's; None if it is, or if it is empty and the home has none.

    Raises:
        BlobsUnavailable: the store does not answer, or is empty although the home has blobs in it.
        DatabaseUnavailable: the database does not work.
    """
    if store is None:
        return _ELSEWHERE if await home_name(database) else None
    owner, ours = await store_owner(store), await home_name(database)
    if owner is not None and owner != ours:
        # Another machine of this home may be between the two steps of ``claim_store``.
        await asyncio.sleep(_STARTING_SECONDS)
        owner, ours = await store_owner(store), await home_name(database)
    if ours is None:
        return _TAKEN if owner is not None or await has_files(store) else None
    if owner is None:
        raise BlobsUnavailable(_MISSING)
    return None if ours == owner else _ELSEWHERE


async def require_own_store(database: Database, store: ObjectStore | None) -> None:
    """Make sure that the store is this home's; claim an empty one if the home has none yet.

    Raises:
        ChangedBlobs: it is another home's, or ours are elsewhere.
        BlobsUnavailable, DatabaseUnavailable: as ``store_fault``.
    """
    if fault := await store_fault(database, store):
        raise ChangedBlobs(fault)
    if store and await home_name(database) is None:
        await claim_store(database, store)


async def claim_store(database: Database, store: ObjectStore) -> None:
    """Claim the store for this home, even from another one; of concurrent machines, one decides the name.

    The store is written first: if that fails, the home is unchanged.

    Raises:
        BlobsUnavailable: it cannot be written.
        DatabaseUnavailable: the database does not work.
    """
    name = await home_name(database) or uuid4().hex
    await _write(store, name)
    async with database.transaction() as session:
        fact = await session.get(FactRow, BLOBS_FACT)
        if fact is None:
            session.add(FactRow(name=BLOBS_FACT, value=name))
        decided = fact.value if fact else name
    if decided != name:
        await _write(store, decided)


async def ensure_store_key(database: Database, new: bytes) -> bytes:
    """Return the HMAC key of this home's files in the store; store ``new`` if there is none.

    It is in SQL, where a party that can only write to the store cannot read it.

    Raises:
        DatabaseUnavailable: the database does not work.
    """
    async with database.snapshot() as session:
        fact = await session.get(FactRow, KEY_FACT)
    if fact is None:
        async with database.transaction() as session:
            fact = await session.get(FactRow, KEY_FACT)
            if fact is None:
                session.add(fact := FactRow(name=KEY_FACT, value=new.hex()))
    return bytes.fromhex(fact.value)


async def has_files(store: ObjectStore) -> bool:
    """True if the store holds PDFs or readings."""
    return bool(await run_in_thread(lambda: store.listed("blobs") or store.listed("readings")))


async def home_name(database: Database) -> str | None:
    """Return the name by which the home knows its store; None if it never had one.

    Raises:
        DatabaseUnavailable: the database does not work.
    """
    async with database.snapshot() as session:
        fact = await session.get(FactRow, BLOBS_FACT)
    return fact.value if fact else None


async def store_owner(store: ObjectStore) -> str | None:
    """Return the name of the home that owns the store; None if there is none.

    Raises:
        BlobsUnavailable: the store does not answer.
    """
    said = await run_in_thread(lambda: store.read(OWNER_FILE, _OWNER_BYTES))
    return said.decode(errors="replace") if said is not None else None


async def _write(store: ObjectStore, owner: str) -> None:
    with tempfile.TemporaryDirectory(prefix="footnote-") as folder:
        draft = Path(folder) / OWNER_FILE
        draft.write_text(owner)
        await run_in_thread(lambda: store.put(draft, OWNER_FILE))
