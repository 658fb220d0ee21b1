"""Status of folders and deleted documents, for admins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.channels import WEB_TENANT
from storage.models import TenantName
from storage.sql.document_state import newest_number
from storage.sql.tables import IS_PRESENT, ChannelRow, DocumentRow, FactRow, FolderRow, VersionRow

# Ids in one statement: engines limit the number of parameters.
IDS_BATCH_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """Status of a folder."""

    id: int
    channel_id: int
    # Tenant name of the channel.
    channel: str
    channel_name: str
    location: str
    origin: str
    watched: bool
    problem: str | None
    # Number of files that are present.
    documents: int
    # Number of deleted documents that can still be restored.
    deleted: int
    # (document, file) of all deletions that wait for an admin's approval.
    pending_deletions: tuple[tuple[UUID, str], ...] = ()
    # An admin paused its scans in a chat.
    is_paused: bool = False
    # Unsupported file -> why it is not read.
    unsupported_files: Mapping[str, str] = field(default_factory=dict)
    # Of the channel, as ``Channel.installation``; also before its first message.
    installation: str = ""


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """Deleted document whose bytes are not purged yet."""

    id: UUID
    file: str
    # Folder from which it was deleted.
    location: str
    sha256: str
    deleted_at: datetime


async def read_status(session: AsyncSession) -> list[FolderStatus]:
    """Return every folder that is watched or has documents or problems, by location."""
    present = func.count().filter(text(f"document.{IS_PRESENT}"))
    has_bytes = select(col(VersionRow.id)).where(col(VersionRow.document_id) == DocumentRow.id).exists()
    is_kept = has_bytes & col(DocumentRow.purged_at).is_(None)
    deleted = func.count().filter(col(DocumentRow.state) == "deleted", is_kept)
    counts = select(col(DocumentRow.folder_id), present, deleted).group_by(col(DocumentRow.folder_id))
    counted = {folder: (here, gone) for folder, here, gone in (await session.execute(counts)).all()}
    rows = select(FolderRow, ChannelRow).join(ChannelRow, col(ChannelRow.id) == FolderRow.channel_id)
    rows = rows.where(col(ChannelRow.tenant) != WEB_TENANT)
    found = (await session.execute(rows.order_by(col(FolderRow.location), col(FolderRow.id)))).all()
    statuses = []
    for folder, channel in found:
        documents, gone = counted.get(folder.id, (0, 0))
        if folder.watched or folder.problem or documents or gone:
            asked = await files_of(session, [UUID(one) for one in folder.asked or ()], folder.id)
            status = FolderStatus(
                id=folder.id,
                channel_id=channel.id,
                channel=channel.tenant,
                channel_name=channel.name,
                location=folder.location,
                origin=folder.origin,
                watched=folder.watched,
                problem=folder.problem,
                documents=documents,
                deleted=gone,
                is_paused=folder.paused,
                pending_deletions=tuple(sorted(asked.items(), key=itemgetter(1))),
                unsupported_files=await read_strangers(session, folder.id) if folder.watched else {},
                installation=channel.installation or TenantName(channel.tenant).workspace,
            )
            statuses.append(status)
    return statuses


async def read_deleted(session: AsyncSession, channel_id: int) -> list[DeletedDocument]:
    """Return a channel's deleted documents whose contents are not purged, newest first."""
    query = (
        select(DocumentRow, col(FolderRow.location), col(VersionRow.sha256))
        .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
        .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
        .where(col(DocumentRow.channel_id) == channel_id, col(DocumentRow.state) == "deleted")
        .where(col(VersionRow.number) == newest_number())
        .where(col(DocumentRow.purged_at).is_(None))
        .order_by(col(DocumentRow.deleted_at).desc(), col(DocumentRow.file))
    )
    return [
        DeletedDocument(row.id, row.file, location, sha256, row.deleted_at)
        for row, location, sha256 in (await session.execute(query)).all()
        if row.deleted_at is not None
    ]


async def files_of(session: AsyncSession, documents: Sequence[UUID], folder_id: int) -> dict[UUID, str]:
    """Return the files of the documents that are in this folder and not deleted."""
    files: dict[UUID, str] = {}
    for some in batches(documents):
        query = select(col(DocumentRow.id), col(DocumentRow.file)).where(
            col(DocumentRow.id).in_(some), col(DocumentRow.folder_id) == folder_id, text(IS_PRESENT)
        )
        files |= {one: file for one, file in (await session.execute(query)).all()}
    return files


def batches(documents: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Yield the ids in batches of one statement."""
    for start in range(0, len(documents), IDS_BATCH_SIZE):
        yield documents[start : start + IDS_BATCH_SIZE]


def strangers_fact(folder_id: int | None) -> str:
    """Return the name of the fact that stores a folder's unsupported files; None: of the inbox itself."""
    return f"strangers {'inbox' if folder_id is None else folder_id}"


async def read_strangers(session: AsyncSession, folder_id: int | None) -> dict[str, str]:
    """Return unsupported file -> reason, from the last scan of a folder or of the inbox itself."""
    fact = await session.get(FactRow, strangers_fact(folder_id), populate_existing=True)
    strangers: dict[str, str] = json.loads(fact.value) if fact else {}
    return strangers
