"""Folders, documents and versions: what the scans saw, written down in small transactions.

Nothing here decides whether a file is settled or gone; ``ingestion`` does, this module records it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.clock import utc_now
from storage.crash_points import reach
from storage.database import Database
from storage.planning import Generations, plan
from storage.publication_work import republish
from storage.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, VersionRow
from storage.telling import tell_failed, tell_folder, tell_refused


@dataclass(frozen=True, slots=True)
class Folder:
    """A place that feeds one channel."""

    id: int
    channel_id: int
    location: str
    watched: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it was when its file was last stored or refused."""

    id: UUID
    file: str
    look: dict[str, Any] | None
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Arrival:
    """Bytes of a file that are safe in the blob store's temporary place."""

    folder: Folder
    file: str
    look: dict[str, Any]
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What an arrival turned out to be."""

    document: UUID
    version: int
    outcome: str
    """new, version, renamed, back or same."""


class Folders:
    """The wish as the scans saw it."""

    def __init__(self, database: Database, generations: Generations) -> None:
        """Record arrivals, and plan these readings of them in the same transaction."""
        self._database = database
        self._generations = generations

    async def ensure(self, channel_id: int, location: str, *, watched: bool) -> Folder:
        """The folder of a channel at a location, made when it is new; once watched, it stays so."""
        async with self._database.transaction() as session:
            found = select(FolderRow).where(
                col(FolderRow.channel_id) == channel_id, col(FolderRow.location) == location
            )
            row = (await session.scalars(found)).first()
            if row is None:
                row = FolderRow(channel_id=channel_id, location=location, watched=watched)
                session.add(row)
            row.watched = row.watched or watched
            await session.flush()
            return _folder(row)

    async def watched(self) -> list[Folder]:
        """Every watched folder, the ones that are not there any more included."""
        async with self._database.snapshot() as session:
            rows = await session.scalars(select(FolderRow).where(col(FolderRow.watched)))
            return [_folder(row) for row in rows]

    async def documents(self, folder_id: int) -> dict[str, KnownDocument]:
        """All documents that the folder ever had, by file."""
        query = select(
            col(DocumentRow.id), col(DocumentRow.file), col(DocumentRow.look), col(DocumentRow.state)
        ).where(col(DocumentRow.folder_id) == folder_id)
        async with self._database.snapshot() as session:
            rows = (await session.execute(query)).all()
        return {row.file: KnownDocument(row.id, row.file, row.look, row.state == "deleted") for row in rows}

    async def report(self, folder_id: int, problem: str | None) -> None:
        """Record why the folder's scans cannot be trusted from now on; None when they can again."""
        async with self._database.transaction() as session:
            await tell_folder(session, folder_id, problem)
            seen = update(FolderRow).where(col(FolderRow.id) == folder_id)
            await session.execute(seen.values(problem=problem))

    async def store(
        self, arrival: Arrival, keep_blob: Callable[[], object], present: Collection[str] | None
    ) -> Stored:
        """Make the arrival a new document, a new version, a renamed or a returned document.

        Args:
            arrival: the bytes and where they came from.
            keep_blob: moves the bytes into the blob store; called inside the transaction, so that
                a purge of the same content cannot come between.
            present: the files that the scan saw, or None when it did not see the whole folder: a
                document with this content whose file is not among them was renamed.
        """
        async with self._database.transaction() as session:
            await asyncio.to_thread(keep_blob)
            reach("after-adopt")
            if await session.get(BlobRow, arrival.sha256) is None:
                session.add(BlobRow(sha256=arrival.sha256, size=arrival.size))
                await session.flush()
            document, outcome = await _document_for(session, arrival, present)
            if document.state == "deleted":
                outcome = "back" if outcome == "same" else outcome
                await _bring_back(session, document, arrival.sha256)
            document.file, document.look = arrival.file, arrival.look
            document.state, document.reason, document.deleted_at = "present", None, None
            number, is_new = await _version_of(session, document.id, arrival.sha256)
            if outcome == "renamed":
                await republish(session, document.id)
            elif is_new and number > 1:
                outcome = "version"
            await session.flush()
            await plan(session, self._generations, {arrival.sha256})
            await tell_failed(session, arrival.sha256)
            return Stored(document.id, number, outcome)

    async def refuse(self, folder: Folder, file: str, look: dict[str, Any], reason: str) -> UUID:
        """Record that a file's bytes cannot be stored; what it was before stays as it is.

        A deleted document stays deleted: its old words must not answer again.
        """
        async with self._database.transaction() as session:
            document = await _at(session, folder.id, file)
            if document is None:
                document = DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=file)
                session.add(document)
            document.look, document.reason = look, reason
            if document.state != "deleted":
                document.state = "quarantined"
            await tell_refused(session, document, reason)
            return document.id

    async def delete(self, documents: Collection[UUID]) -> None:
        """Make documents invisible now; all that is theirs stays until a purge.

        What was live is retired with the very moment of the deletion, so that it can come back.
        """
        now = utc_now()
        reach("before-delete")
        versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(documents))
        async with self._database.transaction() as session:
            gone = update(DocumentRow).where(col(DocumentRow.id).in_(documents))
            await session.execute(gone.values(state="deleted", deleted_at=now))
            shown = update(PublicationRow).where(
                col(PublicationRow.version_id).in_(versions),
                col(PublicationRow.state).in_(("pending", "live")),
            )
            await session.execute(shown.values(state="retired", retired_at=now))
        reach("after-delete")


async def _document_for(
    session: AsyncSession, arrival: Arrival, present: Collection[str] | None
) -> tuple[DocumentRow, str]:
    """(the document these bytes belong to, how they came): known by name, else renamed, else new."""
    document = await _at(session, arrival.folder.id, arrival.file)
    if document is not None:
        return document, "same"
    if present is not None:
        renamed = await _renamed(session, arrival, present)
        if renamed is not None:
            return renamed, "renamed"
    folder = arrival.folder
    document = DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=arrival.file)
    session.add(document)
    await session.flush()
    return document, "new"


async def _at(session: AsyncSession, folder_id: int, file: str) -> DocumentRow | None:
    query = select(DocumentRow).where(col(DocumentRow.folder_id) == folder_id, col(DocumentRow.file) == file)
    return (await session.scalars(query)).first()


async def _renamed(session: AsyncSession, arrival: Arrival, present: Collection[str]) -> DocumentRow | None:
    """The folder's document with this content whose file is gone; the same inode wins over others."""
    newest = select(func.max(VersionRow.number)).where(col(VersionRow.document_id) == DocumentRow.id)
    query = (
        select(DocumentRow)
        .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
        .where(col(DocumentRow.folder_id) == arrival.folder.id, col(VersionRow.sha256) == arrival.sha256)
        .where(col(VersionRow.number) == newest.correlate(DocumentRow).scalar_subquery())
    )
    gone = [row for row in await session.scalars(query) if row.file not in present]
    inode = arrival.look["inode"]
    return min(gone, key=lambda row: ((row.look or {}).get("inode") != inode, str(row.id)), default=None)


async def _version_of(session: AsyncSession, document: UUID, sha256: str) -> tuple[int, bool]:
    """(number of the newest version, whether these bytes had to be made a version)."""
    query = select(VersionRow).where(col(VersionRow.document_id) == document)
    newest = (await session.scalars(query.order_by(col(VersionRow.number).desc()).limit(1))).first()
    if newest is not None and newest.sha256 == sha256:
        return newest.number, False
    number = newest.number + 1 if newest else 1
    session.add(VersionRow(document_id=document, number=number, sha256=sha256))
    return number, True


async def _bring_back(session: AsyncSession, document: DocumentRow, sha256: str) -> None:
    """Undo a deletion: what it retired is live again, unless a purge has begun on it."""
    query = (
        select(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .where(col(VersionRow.document_id) == document.id, col(VersionRow.sha256) == sha256)
        .where(col(PublicationRow.state) == "retired", col(PublicationRow.live_at).is_not(None))
        .where(col(PublicationRow.retired_at) == document.deleted_at)
        .where(col(PublicationRow.lease_owner).is_(None))
    )
    for row in await session.scalars(query):
        row.state, row.retired_at = "live", None


def _folder(row: FolderRow) -> Folder:
    if row.id is None:
        raise ValueError("a folder that was never stored")
    return Folder(row.id, row.channel_id, row.location, row.watched, row.problem)
