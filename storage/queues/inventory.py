"""Reconciliation, SQL side: what index, blobs and readings should hold, and how a loss is recorded.

Queries come in slices: one tenant, or a range of shards with a few thousand files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, or_, select, update
from sqlmodel import col

from storage.clock import utc_now
from storage.files.blobs import Blobs
from storage.files.local_cache import SHARDS
from storage.folders.folders import Folder, folder_of
from storage.models import Rung, TenantName
from storage.queues.index_rebuilds import IndexRebuilds
from storage.queues.publication_queue import LIVE, ExpectedPublication, read_expected
from storage.queues.purge import is_wanted
from storage.queues.reading_queue import requeue_reading
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.leased_queue import is_running
from storage.sql.tables import (
    BlobRow,
    ChannelRow,
    DocumentRow,
    FactRow,
    FolderRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)
from storage.threads import run_in_thread

T = TypeVar("T")
# Adjacent shards of blobs and readings, by the two digits that their names begin with.
Shards = Sequence[str]
# Contents per comparison, and names per statement.
SLICE_CONTENTS = 2000
RECONCILE_FACT = "reconcile"
# Maximum time between two comparisons: a later due time was written by a wrong clock.
MAX_REST = timedelta(hours=2)
_MISSING = (
    "The stored copy was lost. It will be copied again from its folder; if the file is gone, ingest it again."
)


@dataclass(frozen=True, slots=True)
class ExpectedReading:
    """Finished reading and the expected content of its files."""

    id: UUID
    pages: int
    chunks: int
    figures: int
    has_vectors: bool
    has_sentences: bool


class Inventory:
    """SQL side of the reconciliation."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.rebuilds = IndexRebuilds(database)

    async def acquire_lease(self, lease: timedelta, *, is_wanted_now: bool) -> bool:
        """Acquire the lease to reconcile; False if another process holds it or the next run is not due.

        ``is_wanted_now``: run even if it is not due.
        """
        now = utc_now()
        async with self._database.transaction() as session:
            fact = await session.get(FactRow, RECONCILE_FACT) or FactRow(name=RECONCILE_FACT, value="{}")
            turn = {name: datetime.fromisoformat(at) for name, at in json.loads(fact.value).items()}
            is_taken = is_running(turn.get("until", now), now, 2 * lease)
            is_resting = is_running(turn.get("due", now), now, MAX_REST)
            if is_taken or (is_resting and not is_wanted_now):
                return False
            fact.value = json.dumps({"until": (now + lease).isoformat()})
            session.add(fact)
            return True

    async def renew_lease(self, lease: timedelta) -> None:
        """Extend the lease."""
        await self._write_lease("until", lease)

    async def release_lease(self, rest: timedelta) -> None:
        """Release the lease; the next run is due after ``rest``."""
        await self._write_lease("due", rest)

    async def _write_lease(self, name: str, wait: timedelta) -> None:
        async with self._database.transaction() as session:
            value = json.dumps({name: (utc_now() + wait).isoformat()})
            await session.execute(
                update(FactRow).where(col(FactRow.name) == RECONCILE_FACT).values(value=value)
            )

    async def tenants(self) -> dict[TenantName, int]:
        """Return every channel's tenant with the channel's id."""
        async with self._database.snapshot() as session:
            rows = await session.execute(select(col(ChannelRow.tenant), col(ChannelRow.id)))
            return {TenantName(tenant): channel for tenant, channel in rows}

    async def live(self, channel_id: int) -> list[ExpectedPublication]:
        """Return a channel's live publications and what the index has to hold of each."""
        return await read_expected(self._database, LIVE.where(col(PublicationRow.channel_id) == channel_id))

    async def sizes(self) -> dict[TenantName, tuple[int, int]]:
        """Return tenant -> (live publications, their chunks and figures), for tenants with any."""
        objects = func.sum(col(ReadingRow.chunks) + col(ReadingRow.figures))
        query = (
            select(col(ChannelRow.tenant), func.count(), objects)
            .select_from(PublicationRow)
            .join(ChannelRow, col(ChannelRow.id) == PublicationRow.channel_id)
            .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
            .where(col(PublicationRow.state) == "live")
            .group_by(col(ChannelRow.tenant))
        )
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        return {TenantName(tenant): (publications, int(held)) for tenant, publications, held in rows}

    async def orphans(self, held: Collection[UUID]) -> set[UUID]:
        """Return those of ``held`` that SQL lacks or lists as removed; call it after listing the index.

        A publication is recorded before its first chunk is written, so one in progress is never an orphan.
        """
        known = select(col(PublicationRow.id)).where(col(PublicationRow.state) != "removed")
        strays = set(held)
        async with self._database.snapshot() as session:
            for some in batches(held):
                strays -= set(await session.scalars(known.where(col(PublicationRow.id).in_(some))))
        return strays

    async def slices(self) -> list[Shards]:
        """Return all shards in runs of neighbours with about ``SLICE_CONTENTS`` contents each."""
        async with self._database.snapshot() as session:
            contents = await session.scalar(select(func.count()).select_from(BlobRow)) or 0
        run = max(1, len(SHARDS) * SLICE_CONTENTS // max(contents, SLICE_CONTENTS))
        return [SHARDS[start : start + run] for start in range(0, len(SHARDS), run)]

    async def wanted_blobs(self, shards: Shards) -> dict[str, int]:
        """Return the size of every content in these shards that a document needs or that awaits its purge."""
        query = select(col(BlobRow.sha256), col(BlobRow.size)).where(
            # The upper bound: "g" sorts after every hexadecimal digit.
            col(BlobRow.sha256).between(shards[0], f"{shards[-1]}g"),
            or_(is_wanted(BlobRow), has_reading()),
        )
        async with self._database.snapshot() as session:
            return {sha256: size for sha256, size in await session.execute(query)}

    async def drop_orphans(self, candidates: Collection[str], blobs: Blobs) -> int:
        """Remove the blobs that nobody needs, while none can be added; return their number."""
        wanted, dropped = select(col(BlobRow.sha256)).where(or_(is_wanted(BlobRow), has_reading())), 0
        for some in batches(candidates):
            async with blobs.removing():
                async with self._database.snapshot() as session:
                    held = set(await session.scalars(wanted.where(col(BlobRow.sha256).in_(some))))
                await run_in_thread(partial(blobs.remove_all, set(some) - held))
            dropped += len(set(some) - held)
        return dropped

    async def recopy_blob(self, sha256: str, blobs: Blobs) -> int:
        """Remove a lost or corrupt blob and have it copied again from its source file.

        Returns:
            The number of documents that wait for it; 0 if only older versions or deleted documents had it.
        """
        owners = select(col(VersionRow.document_id)).where(
            col(VersionRow.sha256) == sha256, col(VersionRow.number) == newest_number(VersionRow)
        )
        async with blobs.removing():
            await run_in_thread(partial(blobs.remove, sha256))
            async with self._database.transaction() as session:
                rows = await session.scalars(
                    select(DocumentRow).where(
                        col(DocumentRow.id).in_(owners), col(DocumentRow.state) != "deleted"
                    )
                )
                documents = list(rows)
                for document in documents:
                    document.reason = _MISSING  # its stat stays, so that a rename is still detected
                return len(documents)

    async def files_to_recopy(self) -> list[tuple[Folder, frozenset[str]]]:
        """Return the folders with documents that ``recopy_blob`` recorded, and those documents' files."""
        query = (
            select(FolderRow, col(DocumentRow.file))
            .join(DocumentRow, col(DocumentRow.folder_id) == FolderRow.id)
            .where(col(DocumentRow.reason) == _MISSING, col(DocumentRow.state) != "deleted")
            .order_by(col(FolderRow.id))
        )
        files: dict[Folder, set[str]] = {}
        async with self._database.snapshot() as session:
            for row, file in await session.execute(query):
                files.setdefault(folder_of(row), set()).add(file)
        return [(folder, frozenset(names)) for folder, names in files.items()]

    async def readings(self, shards: Shards) -> tuple[set[UUID], list[ExpectedReading]]:
        """Return (all readings of these shards that have or will have files, those that are done)."""
        query = select(ReadingRow).where(
            col(ReadingRow.id).between(UUID(f"{shards[0]}{30 * '0'}"), UUID(f"{shards[-1]}{30 * 'f'}"))
        )
        async with self._database.snapshot() as session:
            rows = list(await session.scalars(query.where(col(ReadingRow.state) != "failed")))
        done = [
            ExpectedReading(
                row.id,
                row.pages,
                row.chunks,
                row.figures,
                has_vectors=row.rung == Rung.FULL,
                has_sentences=bool((row.details or {}).get("sentences")),
            )
            for row in rows
            if row.state == "done"
        ]
        return {row.id for row in rows}, done

    async def requeue_reading(self, reading: UUID) -> bool:
        """Queue a reading whose files are lost for another run, under the same id."""
        async with self._database.transaction() as session:
            return await requeue_reading(session, reading)


def batches(names: Collection[T]) -> Iterator[list[T]]:
    """Yield the names in batches of one statement: engines limit the number of parameters."""
    ordered = list(names)
    for start in range(0, len(ordered), SLICE_CONTENTS):
        yield ordered[start : start + SLICE_CONTENTS]


def has_reading() -> ColumnElement[bool]:
    """True if SQL still has a reading of the content."""
    return exists().where(col(ReadingRow.sha256) == BlobRow.sha256)
