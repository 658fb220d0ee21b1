"""Holds a home to the store that its blobs are in, and a store to one home.

Two homes in one store would each sweep away what the other one keeps. A file in the store and a fact in SQL
say the same; machines that share the database share the store.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from uuid import uuid4

from storage.errors import ChangedBlobs
from storage.files.object_store import ObjectStore
from storage.sql.database import Database
from storage.sql.tables import FactRow
from storage.threads import run_in_thread

OWNER_FILE = "footnote-home.txt"
BLOBS_FACT = "blobs"
"""The fact that no other home may take over."""
_ELSEWHERE = (
    "this home's PDFs are in another store than FOOTNOTE_BLOBS names now: set it back, or move them by "
    "`footnote backup` and `footnote restore`"
)
_TAKEN = "the store that FOOTNOTE_BLOBS names holds another home's PDFs: choose an empty prefix"


async def store_fault(database: Database, store: ObjectStore | None) -> str | None:
    """Why the store cannot be this home's, as a sentence; None: it is, or it is empty.

    Raises:
        BlobsUnavailable: the store does not answer.
        DatabaseUnavailable: the database does not work.
    """
    async with database.snapshot() as session:
        fact = await session.get(FactRow, BLOBS_FACT)
    if store is None:
        return _ELSEWHERE if fact else None
    owner = await _owner(store)
    if (fact and fact.value == owner) or (owner is None and not await is_filled(store)):
        return None
    return _ELSEWHERE if fact else _TAKEN


async def require_own_store(database: Database, store: ObjectStore | None) -> None:
    """Make sure that the store is this home's; an empty one becomes so.

    Raises:
        ChangedBlobs: it is another home's, or ours are elsewhere.
        BlobsUnavailable, DatabaseUnavailable: as ``store_fault``.
    """
    if fault := await store_fault(database, store):
        raise ChangedBlobs(fault)
    if store and await _owner(store) is None:
        await take_store(database, store)


async def take_store(database: Database, store: ObjectStore) -> None:
    """Make it this home's, whoever had it; of machines that do so at once one decides."""
    async with database.transaction() as session:
        fact = await session.get(FactRow, BLOBS_FACT)
        if fact is None:
            fact = FactRow(name=BLOBS_FACT, value=uuid4().hex)
            session.add(fact)
    await _write(store, fact.value)


async def is_filled(store: ObjectStore) -> bool:
    """Whether it holds PDFs or readings."""
    return bool(await run_in_thread(lambda: store.listed("blobs") or store.listed("readings")))


async def _owner(store: ObjectStore) -> str | None:
    said = await run_in_thread(lambda: store.read(OWNER_FILE))
    return said.decode(errors="replace") if said is not None else None


async def _write(store: ObjectStore, owner: str) -> None:
    with tempfile.TemporaryDirectory(prefix="footnote-") as folder:
        draft = Path(folder) / OWNER_FILE
        draft.write_text(owner)
        await run_in_thread(lambda: store.put(draft, OWNER_FILE))
