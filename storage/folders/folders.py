"""Watched folders and their documents: deletions seen by scans, and approvals by admins.

This module records what ``ingestion`` decides. New and changed files are recorded by
``storage/documents/arrivals.py``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.answer_sources import mark_outdated
from storage.chat.notification_events import record_folder, record_unsupported
from storage.clock import utc_now
from storage.crash_points import reach
from storage.folders.folder_status import (
    DeletedDocument,
    FolderStatus,
    batches,
    files_of,
    read_deleted,
    read_status,
    read_strangers,
    strangers_fact,
)
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import IS_PRESENT, DocumentRow, FactRow, FolderRow, PublicationRow, VersionRow

ROWS_BATCH_SIZE = 500
_MAP = "folder map"


@dataclass(frozen=True, slots=True)
class Folder:
    """Source folder of one channel."""

    id: int
    channel_id: int
    location: str
    watched: bool
    problem: str | None
    # Who configured it: inbox, map or hand.
    origin: str


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """Document as of the last time its file was stored or refused."""

    id: UUID
    file: str
    stat: dict[str, Any] | None
    # Its current bytes could not be stored, or were lost since.
    is_refused: bool


@dataclass(frozen=True, slots=True)
class DeletionApproval:
    """A folder's documents with vanished files, by approval of their deletion."""

    # Waiting for approval.
    asked: frozenset[UUID] = frozenset()
    # To be deleted if their files are still missing.
    approved: frozenset[UUID] = frozenset()


class Folders:
    """Watched folders and their documents, as recorded by scans."""

    def __init__(self, database: Database, owner: str | None = None) -> None:
        """Read and write for ``owner``, our name in leases; None: this process holds none."""
        self._database = database
        self.owner = owner

    async def ensure(
        self,
        channel_id: int,
        location: str,
        *,
        watched: bool,
        origin: str = "hand",
        passwords: Sequence[str] = (),
    ) -> Folder:
        """Return a channel's folder at a location; create it if new. A watched one stays watched.

        Attributes of a watched folder are updated; ``passwords`` are references.
        """
        async with self._database.transaction() as session:
            found = select(FolderRow).filter_by(channel_id=channel_id, location=location)
            row = (await session.scalars(found)).first()
            if row is None:
                row = FolderRow(channel_id=channel_id, location=location, watched=watched)
                session.add(row)
            if watched:
                row.watched, row.origin, row.passwords = True, origin, list(passwords)
            await session.flush()
            return folder_of(row)

    async def move_to(self, folder_id: int, location: str) -> Folder | None:
        """Move a folder with its documents to another location.

        Returns None, and changes nothing, if its channel already has a folder there.
        """
        async with self._database.transaction() as session:
            row = await session.get_one(FolderRow, folder_id)
            taken = select(col(FolderRow.id)).where(
                col(FolderRow.channel_id) == row.channel_id, col(FolderRow.location) == location
            )
            if (await session.scalars(taken)).first() is not None:
                return None
            row.location = location
            return folder_of(row)

    async def watched(self, origin: str | None = None) -> list[Folder]:
        """Return every watched folder, including missing ones."""
        query = select(FolderRow).where(col(FolderRow.watched)).order_by(col(FolderRow.id))
        if origin is not None:
            query = query.where(col(FolderRow.origin) == origin)
        async with self._database.snapshot() as session:
            return [folder_of(row) for row in await session.scalars(query)]

    async def of_channel(self, channel_id: int) -> list[str]:
        """Return the locations of a channel's watched folders, oldest first."""
        query = select(col(FolderRow.location)).where(
            col(FolderRow.channel_id) == channel_id, col(FolderRow.watched)
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query.order_by(col(FolderRow.id))))

    async def unmap(self, folders: Collection[int]) -> int:
        """Stop watching folders that an admin unmapped, and delete their documents; return their number.

        Mapping a folder again within the grace period restores its documents.
        """
        here = (
            select(col(DocumentRow.id))
            .where(col(DocumentRow.folder_id).in_(folders))
            .where(text(f"document.{IS_PRESENT}"))
        )
        async with self._database.transaction() as session:
            documents = list(await session.scalars(here))
            await _delete(session, documents)
            left = update(FolderRow).where(col(FolderRow.id).in_(folders)).values(passwords=None)
            await session.execute(left.values(watched=False, problem=None, asked=None, approved=None))
        return len(documents)

    async def unwatch_empty(self, folders: Collection[int]) -> set[int]:
        """Stop watching those of these folders that are empty; return all that are now unwatched.

        A folder leased by another process is left to it; an erased folder counts as unwatched.
        """
        query = select(FolderRow).where(col(FolderRow.id).in_(folders)).with_for_update()
        held = select(col(DocumentRow.folder_id)).where(col(DocumentRow.folder_id).in_(folders))
        async with self._database.transaction() as session:
            rows = list(await session.scalars(query))
            full = set(await session.scalars(held.where(text(f"document.{IS_PRESENT}"))))
            for row in rows:
                if row.watched and row.id not in full and is_ours(row, self.owner):
                    await record_folder(session, row.id, None)
                    row.watched, row.problem, row.asked, row.approved = False, None, None, None
        return set(folders) - {row.id for row in rows if row.watched}

    async def documents(self, folder_id: int) -> dict[str, KnownDocument]:
        """Return the folder's documents that are not deleted, by file."""
        query = select(
            col(DocumentRow.id), col(DocumentRow.file), col(DocumentRow.stat), col(DocumentRow.reason)
        ).where(col(DocumentRow.folder_id) == folder_id, text(IS_PRESENT))
        known: dict[str, KnownDocument] = {}
        async with self._database.snapshot() as session:
            result = await session.stream(query)
            async for rows in result.partitions(ROWS_BATCH_SIZE):  # other tasks run between batches
                known |= {
                    row.file: KnownDocument(row.id, row.file, row.stat, row.reason is not None)
                    for row in rows
                }
        return known

    async def answered(self, channel_id: int) -> frozenset[UUID]:
        """Return a channel's documents, in all folders, that were ever live and are not deleted."""
        query = (
            select(col(DocumentRow.id))
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .join(PublicationRow, col(PublicationRow.version_id) == VersionRow.id)
            .where(col(DocumentRow.channel_id) == channel_id, text(f"document.{IS_PRESENT}"))
            .where(col(PublicationRow.live_at).is_not(None))
        )
        async with self._database.snapshot() as session:
            return frozenset(await session.scalars(query))

    async def report(
        self, folder_id: int, problem: str | None, asked: Collection[UUID] | None = None
    ) -> None:
        """Record why the folder's scans are not trusted; None: they are again.

        Does nothing if the folder was unwatched while the scan was running.

        Args:
            problem: a message for an admin.
            asked: documents whose deletion needs approval; None: unchanged.
        """
        async with self._database.transaction() as session:
            row = await session.get_one(FolderRow, folder_id, with_for_update=True)
            if not row.watched:
                return
            await record_folder(session, folder_id, problem)
            row.problem = problem
            if asked is not None:
                row.asked = sorted(map(str, asked)) or None

    async def record_unsupported_files(self, folder_id: int | None, strangers: Mapping[str, str]) -> None:
        """Record a folder's unsupported files with reasons; each is announced once.

        None: the inbox itself, which feeds no channel, so only admins see them.
        """
        if await self.unsupported_files(folder_id) == strangers:
            return
        fact = FactRow(name=strangers_fact(folder_id), value=json.dumps(dict(strangers)))
        async with self._database.transaction() as session:
            if folder_id is not None:
                row = await session.get_one(FolderRow, folder_id, with_for_update=True)
                if not row.watched or not is_ours(row, self.owner):
                    return
                await record_unsupported(session, row, strangers)
            await session.merge(fact)

    async def unsupported_files(self, folder_id: int | None = None) -> dict[str, str]:
        """Return unsupported file -> reason, for a folder or the inbox itself."""
        async with self._database.snapshot() as session:
            return await read_strangers(session, folder_id)

    async def deletion_approval(self, folder_id: int) -> DeletionApproval:
        """Return the folder's deletions that wait for approval, and those approved."""
        async with self._database.snapshot() as session:
            row = await session.get_one(FolderRow, folder_id)
            return DeletionApproval(
                frozenset(map(UUID, row.asked or ())), frozenset(map(UUID, row.approved or ()))
            )

    async def approve(
        self, folder_id: int, shown: Collection[UUID] | None = None, action: AuditedAction | None = None
    ) -> int:
        """Approve deletions: documents still missing at the next scan are deleted.

        Args:
            shown: what the admin saw; later ones keep waiting. None: all.

        Returns:
            The number of approved documents; 0 if none was waiting.
        """
        async with self._database.transaction() as session:
            row = await session.get(FolderRow, folder_id)
            if row is None or not row.asked:
                return 0
            allowed = {one for one in row.asked if shown is None or UUID(one) in shown}
            row.approved = sorted({*(row.approved or ()), *allowed}) or None
            row.asked = sorted({*row.asked} - allowed) or None
            if action and allowed:
                await record_action(session, action)
            return len(allowed)

    async def pause(self, folders: Collection[int], action: AuditedAction, *, is_paused: bool) -> int:
        """Pause or resume scans of those of these folders that are watched; return how many changed."""
        rows = update(FolderRow).where(col(FolderRow.watched), col(FolderRow.paused) != is_paused)
        rows = rows.where(col(FolderRow.id).in_(folders))
        async with self._database.transaction() as session:
            changed = (
                await session.scalars(rows.values(paused=is_paused).returning(col(FolderRow.id)))
            ).all()
            if changed:
                await record_action(session, action)
        return len(changed)

    async def paused(self) -> frozenset[int]:
        """Return the folders that an admin paused in a chat."""
        async with self._database.snapshot() as session:
            return frozenset(await session.scalars(select(col(FolderRow.id)).where(col(FolderRow.paused))))

    async def delete(
        self, folder_id: int, gone: Mapping[UUID, str], settled: Collection[UUID] = ()
    ) -> list[UUID]:
        """Soft-delete documents: hide them now, and keep their data until a purge.

        Args:
            folder_id: the folder whose scan misses them.
            gone: document -> file; one renamed or moved in the meantime is spared.
            settled: approved documents whose files are back: their approval is void.

        Returns:
            The deleted documents; none if another process now scans the location.
        """
        reach("before-delete")
        async with self._database.transaction() as session:
            folder = await session.get_one(FolderRow, folder_id, with_for_update=True)
            if not is_ours(folder, self.owner):
                return []
            files = await files_of(session, list(gone), folder_id)
            deleted = [one for one, file in files.items() if file == gone[one]]
            await _delete(session, deleted)
            used_up = {str(one) for one in (*gone, *settled)}
            folder.approved = [one for one in folder.approved or () if one not in used_up] or None
        reach("after-delete")
        return deleted

    async def deleted(self, channel_id: int) -> list[DeletedDocument]:
        """Return a channel's deleted documents that can still be restored, newest first."""
        async with self._database.snapshot() as session:
            return await read_deleted(session, channel_id)

    async def store_map(self, text: str) -> None:
        """Store the folder map in force, for a start with a broken one."""
        async with self._database.transaction() as session:
            await session.merge(FactRow(name=_MAP, value=text))

    async def stored_map(self) -> str | None:
        """Return the last folder map that was in force."""
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, _MAP)
        return fact.value if fact else None

    async def status(self) -> list[FolderStatus]:
        """Return every folder that is watched or has documents or problems, by location."""
        async with self._database.snapshot() as session:
            return await read_status(session)


async def _delete(session: AsyncSession, documents: Sequence[UUID]) -> None:
    """Retire live publications with the time of the deletion, by which an undo finds them."""
    now = utc_now()
    for some in batches(documents):
        gone = update(DocumentRow).where(col(DocumentRow.id).in_(some))
        await session.execute(gone.values(state="deleted", deleted_at=now))
        versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(some))
        shown = update(PublicationRow).where(
            col(PublicationRow.version_id).in_(versions), col(PublicationRow.state).in_(("pending", "live"))
        )
        await session.execute(shown.values(state="retired", retired_at=now))
        await mark_outdated(session, some)


def is_ours(folder: FolderRow, owner: str | None) -> bool:
    """True if no process but ``owner`` holds the lease: a process that was suspended has outdated data."""
    return owner is None or folder.lease_owner in (None, owner)


def folder_of(row: FolderRow) -> Folder:
    """Convert a row."""
    return Folder(row.id, row.channel_id, row.location, row.watched, row.problem, row.origin)
