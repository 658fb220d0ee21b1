"""Watched folders and their documents: what the scans saw go, and what an admin said about it.

Nothing here decides whether a file is gone; ``ingestion`` does, this module records it. What came is
recorded by ``storage/documents/arrivals.py``.
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

from storage.chat.answer_sources import mark_changed
from storage.chat.notification_events import record_folder, record_strangers
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
    """A place that feeds one channel."""

    id: int
    channel_id: int
    location: str
    watched: bool
    problem: str | None
    # Who wants it: inbox, map or hand.
    origin: str


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it was when its file was last stored or refused."""

    id: UUID
    file: str
    stat: dict[str, Any] | None
    # Its bytes as they are now could not be stored, or were lost since.
    is_refused: bool


@dataclass(frozen=True, slots=True)
class DeletionApproval:
    """Documents of a folder whose files vanished, as far as that is an admin's business."""

    # They wait for a word.
    asked: frozenset[UUID] = frozenset()
    # They may go, if their files are still away.
    approved: frozenset[UUID] = frozenset()


class Folders:
    """Watched folders and their documents, as the scans saw them."""

    def __init__(self, database: Database, owner: str | None = None) -> None:
        """Read and write for ``owner``, the name under which we lease places; None: we lease none."""
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
        """Return the folder of a channel at a location, made when it is new; once watched, it stays so.

        What is said of a watched one counts from now on; ``passwords`` are references.
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
        """Expect a folder elsewhere from now on, with all that it holds.

        Returns None, and changes nothing, when its channel has a folder there already.
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
        """Return every watched folder, the ones that are not there any more included."""
        query = select(FolderRow).where(col(FolderRow.watched)).order_by(col(FolderRow.id))
        if origin is not None:
            query = query.where(col(FolderRow.origin) == origin)
        async with self._database.snapshot() as session:
            return [folder_of(row) for row in await session.scalars(query)]

    async def of_channel(self, channel_id: int) -> list[str]:
        """Where the watched folders of a channel lie, the oldest first."""
        query = select(col(FolderRow.location)).where(
            col(FolderRow.channel_id) == channel_id, col(FolderRow.watched)
        )
        async with self._database.snapshot() as session:
            return list(await session.scalars(query.order_by(col(FolderRow.id))))

    async def unmap(self, folders: Collection[int]) -> int:
        """Watch these folders no longer, because an admin said so: their documents are deleted.

        Mapped again within the grace, everything in them comes back. Returns how many were deleted.
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

    async def forget_empty(self, folders: Collection[int]) -> set[int]:
        """Watch those of these folders no longer that hold nothing; returns all that nobody watches by now.

        One that another process scans is left to that process; one that was erased nobody watches.
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
            async for rows in result.partitions(ROWS_BATCH_SIZE):  # in between, others have their turn
                known |= {
                    row.file: KnownDocument(row.id, row.file, row.stat, row.reason is not None)
                    for row in rows
                }
        return known

    async def answered(self, channel_id: int) -> frozenset[UUID]:
        """Documents of a channel, in all its folders, that answer or once did and are not deleted."""
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
        """Record why the folder's scans cannot be trusted from now on; None when they can again.

        Nothing is recorded of a folder that was forgotten or unmapped while the scan was on its way.

        Args:
            folder_id: the folder.
            problem: a sentence for an admin.
            asked: the documents whose deletion the problem asks about; None: those that were asked about.
        """
        async with self._database.transaction() as session:
            row = await session.get_one(FolderRow, folder_id, with_for_update=True)
            if not row.watched:
                return
            await record_folder(session, folder_id, problem)
            row.problem = problem
            if asked is not None:
                row.asked = sorted(map(str, asked)) or None

    async def keep_strangers(self, folder_id: int | None, strangers: Mapping[str, str]) -> None:
        """Record which files of a folder are not read, and why; each is announced once.

        None: of the inbox itself, which feeds no channel, so that admins alone can see them.
        """
        if await self.strangers(folder_id) == strangers:
            return
        fact = FactRow(name=strangers_fact(folder_id), value=json.dumps(dict(strangers)))
        async with self._database.transaction() as session:
            if folder_id is not None:
                row = await session.get_one(FolderRow, folder_id, with_for_update=True)
                if not row.watched or not is_ours(row, self.owner):
                    return
                await record_strangers(session, row, strangers)
            await session.merge(fact)

    async def strangers(self, folder_id: int | None = None) -> dict[str, str]:
        """File -> why it is not read, of a folder or of the inbox itself."""
        async with self._database.snapshot() as session:
            return await read_strangers(session, folder_id)

    async def deletion_approval(self, folder_id: int) -> DeletionApproval:
        """What waits for an admin's word in this folder, and what has it."""
        async with self._database.snapshot() as session:
            row = await session.get_one(FolderRow, folder_id)
            return DeletionApproval(
                frozenset(map(UUID, row.asked or ())), frozenset(map(UUID, row.approved or ()))
            )

    async def approve(
        self, folder_id: int, shown: Collection[UUID] | None = None, action: AuditedAction | None = None
    ) -> int:
        """Return an admin's word: what was asked about may go if it is still missing at the next scan.

        Args:
            folder_id: the folder.
            shown: what the admin saw; what was asked since goes on waiting. None: all that was asked.
            action: kept with it.

        Returns:
            How many documents that are; none when nothing was asked.
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
        """Have those of these folders that are watched not be scanned, or scanned again; returns how many."""
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
        """Make documents invisible now; all that is theirs stays until a purge.

        Args:
            folder_id: the folder whose scan misses them.
            gone: document -> file; one that has moved to another name or folder meanwhile is spared.
            settled: approved documents whose files are back: the word about them is used up.

        Returns:
            The documents that were deleted; none when another process scans the place by now.
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
        """What was deleted from a channel and could still be brought back, the newest first."""
        async with self._database.snapshot() as session:
            return await read_deleted(session, channel_id)

    async def keep_map(self, text: str) -> None:
        """Keep the folder map that is in force, for a start beside a broken one."""
        async with self._database.transaction() as session:
            await session.merge(FactRow(name=_MAP, value=text))

    async def kept_map(self) -> str | None:
        """Return the last folder map that was in force."""
        async with self._database.snapshot() as session:
            fact = await session.get(FactRow, _MAP)
        return fact.value if fact else None

    async def status(self) -> list[FolderStatus]:
        """Return every folder that is watched, or that anything is left of, by location."""
        async with self._database.snapshot() as session:
            return await read_status(session)


async def _delete(session: AsyncSession, documents: Sequence[UUID]) -> None:
    """What was live is retired with the very moment of the deletion, so that it can come back."""
    now = utc_now()
    for some in batches(documents):
        gone = update(DocumentRow).where(col(DocumentRow.id).in_(some))
        await session.execute(gone.values(state="deleted", deleted_at=now))
        versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(some))
        shown = update(PublicationRow).where(
            col(PublicationRow.version_id).in_(versions), col(PublicationRow.state).in_(("pending", "live"))
        )
        await session.execute(shown.values(state="retired", retired_at=now))
        await mark_changed(session, some)


def is_ours(folder: FolderRow, owner: str | None) -> bool:
    """True if nobody but ``owner`` holds the lease: who was halted meanwhile knows an old folder."""
    return owner is None or folder.lease_owner in (None, owner)


def folder_of(row: FolderRow) -> Folder:
    """As SQL has it."""
    return Folder(row.id, row.channel_id, row.location, row.watched, row.problem, row.origin)
