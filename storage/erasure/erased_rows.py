"""SQL side of an erasure: contents of documents, and deletion of documents and channels."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import delete, exists, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.chat.traces import baseline_fact
from storage.clock import utc_now
from storage.folders.folder_status import strangers_fact
from storage.queues.index_rebuilds import rebuild_fact
from storage.sql.tables import (
    ApiTokenRow,
    BlobRow,
    ChannelMoveRow,
    ChannelRow,
    DocumentRow,
    FactRow,
    FolderRow,
    InboxRow,
    NoticeRow,
    OutboxRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)


async def contents_of(
    session: AsyncSession, documents: Collection[UUID]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return (contents that only these documents have, contents that others have, too)."""
    mine, other, owner = VersionRow, aliased(VersionRow), aliased(DocumentRow)
    is_shared = exists().where(
        col(other.sha256) == mine.sha256,
        col(other.document_id).not_in(documents),
        col(other.document_id) == owner.id,
        col(owner.purged_at).is_(None),
    )
    query = select(col(mine.sha256), is_shared).where(col(mine.document_id).in_(documents))
    rows = [(sha256, shared) for sha256, shared in await session.execute(query)]
    shared = frozenset(sha256 for sha256, others in rows if others)
    return frozenset(sha256 for sha256, _ in rows) - shared, shared


async def forget_documents(session: AsyncSession, documents: Collection[UUID], own: Collection[str]) -> None:
    """Delete the documents' rows, after everything that refers to them."""
    versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(documents))
    folders = select(col(DocumentRow.folder_id)).where(col(DocumentRow.id).in_(documents))
    names = {str(one) for one in documents}
    for folder in await session.scalars(select(FolderRow).where(col(FolderRow.id).in_(folders))):
        folder.asked = [one for one in folder.asked or () if one not in names] or None
        folder.approved = [one for one in folder.approved or () if one not in names] or None
    await session.execute(delete(NoticeRow).where(col(NoticeRow.document_id).in_(documents)))
    await session.execute(delete(PublicationRow).where(col(PublicationRow.version_id).in_(versions)))
    await session.execute(delete(VersionRow).where(col(VersionRow.document_id).in_(documents)))
    await session.execute(delete(DocumentRow).where(col(DocumentRow.id).in_(documents)))
    has_version = exists().where(col(VersionRow.sha256) == BlobRow.sha256)
    has_reading = exists().where(col(ReadingRow.sha256) == BlobRow.sha256)
    unused = delete(BlobRow).where(col(BlobRow.sha256).in_(own), ~has_version, ~has_reading)
    await session.execute(unused)


async def forget_channel(session: AsyncSession, channel_id: int) -> None:
    """Delete a channel with its folders; keep its row, anonymized, while messages in it need an update."""
    folders = list(
        await session.scalars(select(col(FolderRow.id)).where(col(FolderRow.channel_id) == channel_id))
    )
    facts = [
        baseline_fact(channel_id),
        rebuild_fact(channel_id),
        *(strangers_fact(folder) for folder in folders),
    ]
    await session.execute(delete(FactRow).where(col(FactRow.name).in_(facts)))
    told = update(NoticeRow).where(col(NoticeRow.told_in) == channel_id)
    await session.execute(told.values(told_in=None))
    for table in (NoticeRow, ChannelMoveRow, ApiTokenRow):
        await session.execute(delete(table).where(col(table.channel_id) == channel_id))
    await session.execute(delete(FolderRow).where(col(FolderRow.id).in_(folders)))
    untold = (
        select(col(InboxRow.id))
        .join(OutboxRow, col(OutboxRow.inbox_id) == InboxRow.id)
        .where(col(InboxRow.channel_id) == channel_id, col(OutboxRow.changed_at).is_not(None))
    )
    done = select(col(InboxRow.id)).where(
        col(InboxRow.channel_id) == channel_id, col(InboxRow.id).not_in(untold)
    )
    ids = list(await session.scalars(done))
    await session.execute(delete(OutboxRow).where(col(OutboxRow.inbox_id).in_(ids)))
    await session.execute(delete(InboxRow).where(col(InboxRow.id).in_(ids)))
    row = await session.get_one(ChannelRow, channel_id, with_for_update=True)
    if await session.scalar(untold.limit(1)) is None:
        await session.delete(row)
    else:
        row.name, row.named_by, row.address = row.tenant, None, None
        row.left_at = utc_now()  # so that the row is erased later, unless the channel speaks again
