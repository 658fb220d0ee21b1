"""Ingestion of scanned files into SQL: new documents, new versions, renamed and returned documents.

Files that may have swapped names arrive together and are matched together, in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.answer_sources import mark_outdated
from storage.chat.notification_events import record_failed, record_restored, record_unstorable
from storage.crash_points import reach
from storage.documents.identity import Arrival, ScanContext, documents_at, is_not_purged, match_documents
from storage.files.blobs import Blobs
from storage.folders.folders import Folder, is_ours
from storage.queues.planner import Generations, plan
from storage.queues.publication_queue import republish
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import IS_PRESENT, BlobRow, DocumentRow, FolderRow, PublicationRow, VersionRow
from storage.threads import run_in_thread

# File -> (stat, sha256) of its stored contents that are not purged.
KnownContents = dict[str, list[tuple[dict[str, Any], str]]]


@dataclass(frozen=True, slots=True)
class StoredArrival:
    """Outcome of storing an arrival."""

    file: str
    document: UUID
    version: int
    # new, version, renamed, back or same.
    outcome: str


@dataclass(frozen=True, slots=True)
class SameContentDocument:
    """A document in another folder of the channel with the same content as an arrival."""

    document: UUID
    location: str
    file: str


class Arrivals:
    """Stores the files that arrived in a folder."""

    def __init__(self, database: Database, generations: Generations, blobs: Blobs) -> None:
        """Plan readings of ``generations`` in the same transaction; ``blobs`` hold the contents."""
        self._database = database
        self._blobs = blobs
        self._generations = generations

    async def store(
        self,
        folder: Folder,
        arrivals: Sequence[Arrival],
        scan_context: ScanContext | None,
        *,
        owner: str | None = None,
    ) -> list[StoredArrival]:
        """Store each arrival as a new document, a new version, or a renamed or returned document.

        Args:
            folder: folder of the arrivals.
            arrivals: files to match together; each name once.
            scan_context: state of the rest of the folder; None if only single files were scanned, so that
                every name keeps its document.
            owner: our name as holder of the folder's lease; if another process holds it, nothing is stored.
        """
        async with self._blobs.adding():  # disk I/O precedes the transaction, which blocks all writers
            for one in arrivals:
                await run_in_thread(one.keep_blob)
            reach("after-adopt")
            return await self._store(folder, arrivals, scan_context, owner)

    async def _store(
        self,
        folder: Folder,
        arrivals: Sequence[Arrival],
        scan_context: ScanContext | None,
        owner: str | None,
    ) -> list[StoredArrival]:
        contents = {one.sha256 for one in arrivals}
        async with self._database.transaction() as session:
            row = await session.get_one(FolderRow, folder.id)
            if (folder.watched and not row.watched) or not is_ours(row, owner):
                return []  # unmapped by an admin during the copy, or the lease was lost
            for one in arrivals:
                if await session.get(BlobRow, one.sha256) is None:
                    session.add(BlobRow(sha256=one.sha256, size=one.size))
            await session.flush()
            owners = await match_documents(session, folder, arrivals, scan_context)
            stored = [await _store_one(session, folder, one, owners.get(one.file)) for one in arrivals]
            await session.flush()
            await plan(session, self._generations, contents)
            await record_failed(session, contents)
            return stored

    async def refuse(self, folder: Folder, file: str, stat: dict[str, Any], reason: str) -> UUID:
        """Record that a file's bytes cannot be stored; an earlier version stays live.

        A deleted document of that name is left alone: its old content must not become live again.
        """
        async with self._database.transaction() as session:
            document = await session.scalar(documents_at(folder, [file]))
            if document is None:
                document = DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=file)
                session.add(document)
            document.stat, document.reason, document.state = stat, reason, "quarantined"
            await record_unstorable(session, document, reason)
            return document.id

    async def same_content_documents(
        self, folder: Folder, contents: Collection[str]
    ) -> list[SameContentDocument]:
        """Return documents of the channel's other folders with one of these contents: possible moves."""
        query = (
            select(col(DocumentRow.id), col(FolderRow.location), col(DocumentRow.file))
            .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .where(col(VersionRow.sha256).in_(contents), col(VersionRow.number) == newest_number())
            .where(col(DocumentRow.channel_id) == folder.channel_id)
            .where(col(DocumentRow.folder_id) != folder.id, text(f"document.{IS_PRESENT}"))
        )
        async with self._database.snapshot() as session:
            return [SameContentDocument(*row) for row in await session.execute(query)]

    async def known_contents(self, location: str, files: Collection[str]) -> KnownContents:
        """Return the last stored contents of these files, in any channel.

        A location that is added to another channel, or added again, need not be copied again.
        """
        query = (
            select(col(DocumentRow.file), col(DocumentRow.stat), col(VersionRow.sha256))
            .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .where(col(FolderRow.location) == location, col(DocumentRow.file).in_(files))
            .where(col(VersionRow.number) == newest_number(), is_not_purged())
            .where(col(DocumentRow.reason).is_(None))
        )
        found: KnownContents = {}
        async with self._database.snapshot() as session:
            for file, stat, sha256 in (await session.execute(query)).all():
                if stat:
                    found.setdefault(file, []).append((stat, sha256))
        return found


async def _store_one(
    session: AsyncSession, folder: Folder, arrival: Arrival, document: DocumentRow | None
) -> StoredArrival:
    """Attach the arrival to its document, or to a new one."""
    outcome = "same"
    if document is None:
        outcome = "new"
        document = DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=arrival.file)
        session.add(document)
        await session.flush()
    elif document.state == "deleted":
        outcome = "back"
        await _restore_deleted(session, document, arrival)
    elif (document.folder_id, document.file) != (folder.id, arrival.file):
        outcome = "renamed"
    document.folder_id, document.file, document.stat = folder.id, arrival.file, arrival.stat
    document.state, document.reason, document.deleted_at = "present", None, None
    number, is_new = await _version_of(session, document.id, arrival.sha256)
    if outcome == "back":
        await session.flush()
        await record_restored(session, document.id)
    outcome = "version" if is_new and number > 1 else outcome
    return StoredArrival(arrival.file, document.id, number, outcome)


async def _version_of(session: AsyncSession, document: UUID, sha256: str) -> tuple[int, bool]:
    """Return (number of the newest version, True if it was created for these bytes)."""
    query = select(VersionRow).where(col(VersionRow.document_id) == document)
    newest = (await session.scalars(query.order_by(col(VersionRow.number).desc()).limit(1))).first()
    if newest is not None and newest.sha256 == sha256:
        newest.locked = False  # the folder or its password may be another one now
        return newest.number, False
    number = newest.number + 1 if newest else 1
    session.add(VersionRow(document_id=document, number=number, sha256=sha256))
    return number, True


async def _restore_deleted(session: AsyncSession, document: DocumentRow, arrival: Arrival) -> None:
    """Undo a deletion: publications that it retired are live again, unless their purge has begun.

    They are also published again, because they were not reconciled with the index since.
    """
    query = (
        select(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .where(col(VersionRow.document_id) == document.id, col(VersionRow.sha256) == arrival.sha256)
        .where(col(PublicationRow.state) == "retired", col(PublicationRow.live_at).is_not(None))
        .where(col(PublicationRow.retired_at) == document.deleted_at)
        .where(col(PublicationRow.lease_owner).is_(None))
    )
    for row in await session.scalars(query):
        row.state, row.retired_at = "live", None
    await mark_outdated(session, [document.id])
    await republish(session, document.id)
