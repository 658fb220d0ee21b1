"""Erases documents, channels and what people said from SQL, index and files, before their time is over.

First all of it is hidden, so that nothing more is made of it; whoever is at work on it loses it. Then the
words go, the index's chunks, the files, and the rows last: an erasure that died meanwhile finds them again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.chat.channels import PLATFORM, Channels
from storage.chat.traces import baseline_fact
from storage.clock import utc_now
from storage.erasure.targets import ErasureTarget, channel_target, document_target, words_of
from storage.errors import StillInFolder, UnknownTenant
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.folders.folder_status import strangers_fact
from storage.index.base import Index
from storage.models import Channel, TenantName
from storage.queues.index_rebuilds import IndexRebuilds, rebuild_fact
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import (
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
from storage.threads import run_in_thread
from storage.web_pages.page_store import WebPageStore

SETTLE_SECONDS = 15.0
"""For what others had in their hands: leases are looked at every five seconds, quick answers take three."""
EXTRA_CHUNKS = 200
"""Ordinals removed beyond the number counted: a crash leaves some that no filter finds."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ErasureReport:
    """What an erasure took away, or would."""

    rows: dict[str, int] = field(default_factory=dict)
    """By table: rows that went, or lost their words."""
    blobs: int = 0
    readings: int = 0
    pictures: int = 0
    """Drawn pages and figures."""
    publications: int = 0
    """Readings of a version that the index held."""
    reindexed: int = 0
    """Documents of the same channel that wait for a new index of it."""
    messages: int = 0
    """Messages in chats that are going to say that their answer was removed."""
    shared: int = 0
    """Contents that stay, because another document has them, too."""
    seconds: float = 0.0

    @property
    def texts(self) -> int:
        """Texts that quote what is erased, besides itself."""
        return sum(
            count for table, count in self.rows.items() if table not in ("document", "version", "channel")
        )


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the documents of a target consist of."""

    publications: Sequence[tuple[UUID, TenantName, int]] = ()
    """(publication, tenant, chunks and figures)."""
    versions: int = 0
    own: frozenset[str] = frozenset()
    """Contents that no other document wants."""
    shared: frozenset[str] = frozenset()
    readings: Sequence[UUID] = ()
    """Of the own contents."""


class Eraser:
    """Erases what a target names, everywhere."""

    def __init__(
        self,
        database: Database,
        *,
        blobs: Blobs,
        files: ReadingFiles,
        index: Index,
        web_pages: WebPageStore,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        """``settle_seconds``: waited for what others have in their hands; 0 where nobody else is at work."""
        self._database = database
        self._blobs = blobs
        self._files = files
        self._index = index
        self._web_pages = web_pages
        self._rebuilds = IndexRebuilds(database)
        self._settle_seconds = settle_seconds

    async def preview(self, target: ErasureTarget, *, rebuilds_index: bool = False) -> ErasureReport:
        """What ``erase`` would take away; nothing is changed.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        words, contents = await words_of(self._database, target), await self._contents(target)
        report = _report(words.counts(), target, contents)
        report.blobs, report.readings = len(contents.own), len(contents.readings)
        report.pictures = await asyncio.to_thread(self._blobs.pictures_of, contents.own)
        if rebuilds_index and self._leaves_words(target):
            report.reindexed = await self._others(target)
        return report

    async def erase(
        self, target: ErasureTarget, action: AuditedAction, *, rebuilds_index: bool = False
    ) -> ErasureReport:
        """Erase it; when this returns nothing of it is left on the disk. Repeated, it ends what was begun.

        An index that cannot be scrubbed keeps a document's words, which no search finds. With
        ``rebuilds_index`` the channel's is dropped for that; questions there wait until the other documents
        are in a new one, which the ingestion of some process makes.

        Raises:
            InfrastructureError: an engine is away; what was hidden stays so, and the next call goes on.
        """
        started = time.monotonic()
        was_busy = await self._hide(target, action)
        await asyncio.sleep(max(self._settle_seconds, SETTLE_SECONDS if was_busy else 0))
        words, contents = await words_of(self._database, target), await self._contents(target)
        report = _report(words.counts(), target, contents)
        report.messages = await words.erase(self._database, told=True)
        await self._remove_from_index(target, contents)
        if rebuilds_index and self._leaves_words(target):
            report.reindexed = await self._others(target)
            await self._rebuild_index(target)
        await self._remove_files(contents, report)
        async with self._database.transaction() as session:
            await _forget_documents(session, target.documents, contents)
            if target.is_whole_channel and target.channel:
                has_new = exists().where(col(DocumentRow.channel_id) == target.channel.id)
                if not await session.scalar(select(has_new)):  # else a file came meanwhile, and is its own
                    await _forget_channel(session, target.channel.id)
            elif target.conversations:
                talked = update(ChannelRow).where(col(ChannelRow.id).in_(target.conversations))
                # What was left goes whole when its folder is gone by the end of another grace.
                await session.execute(
                    talked.where(col(ChannelRow.left_at).is_not(None)).values(left_at=utc_now())
                )
                # Of a direct chat that is a person's; what an admin calls a channel is the admin's.
                nameless = talked.where(col(ChannelRow.named_by) == PLATFORM)
                await session.execute(nameless.values(name=ChannelRow.tenant, named_by=None))
        if target.is_whole_channel:
            await self._web_pages.prune()
        await self._database.scrub()
        report.seconds = round(time.monotonic() - started, 1)
        _log.info("erased=%s milliseconds=%d", target.subject, report.seconds * 1000)
        return report

    async def erase_document(self, channel: Channel, file: str, action: AuditedAction | None) -> int:
        """Erase a file of a channel, or only look at it where nobody acts; returns the texts that quote it.

        Raises:
            SettingsError: there is no such file.
            StillInFolder: it lies in a watched folder.
            InfrastructureError: as ``erase``.
        """
        target = await document_target(self._database, channel, file)
        return (await (self.erase(target, action) if action else self.preview(target))).texts

    async def erase_left(self, channels: Channels, before: datetime) -> None:
        """Erase the channels that we left before then; of one whose folder is there still only its talks.

        Raises:
            InfrastructureError: as ``erase``.
        """
        for channel in await channels.left_before(before):
            try:
                target = await channel_target(self._database, channel)
            except StillInFolder:
                target = ErasureTarget(channel=channel, conversations=(channel.id,))
            await self.erase(target, AuditedAction("footnote", "erase", channel.tenant, "left"))

    async def _hide(self, target: ErasureTarget, action: AuditedAction) -> bool:
        """Nothing of it answers from now on; returns whether somebody was at work on it."""
        versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(target.documents))
        now = utc_now()
        async with self._database.transaction() as session:
            hidden = update(DocumentRow).where(
                col(DocumentRow.id).in_(target.documents), col(DocumentRow.state) != "deleted"
            )
            await session.execute(hidden.values(state="deleted", deleted_at=now))
            shown = await session.scalars(
                select(PublicationRow).where(
                    col(PublicationRow.version_id).in_(versions), col(PublicationRow.state) != "removed"
                )
            )
            was_busy = False
            for row in shown:
                was_busy |= row.lease_owner is not None
                row.fence += 1
                row.lease_owner = row.lease_until = None
                if row.state != "retired":
                    row.state, row.retired_at = "retired", now
            own = (await _contents_of(session, target.documents))[0]
            for reading in await session.scalars(
                select(ReadingRow).where(col(ReadingRow.sha256).in_(own), col(ReadingRow.state) == "waiting")
            ):
                was_busy |= reading.lease_owner is not None
                reading.fence += 1
                reading.lease_owner = reading.lease_until = None
                reading.state = "failed"
            await record_action(session, action)
        return was_busy

    async def _contents(self, target: ErasureTarget) -> _Contents:
        versions = select(col(VersionRow.id)).where(col(VersionRow.document_id).in_(target.documents))
        objects = col(ReadingRow.chunks) + col(ReadingRow.figures)
        published = (
            select(col(PublicationRow.id), col(ChannelRow.tenant), objects)
            .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
            .join(ChannelRow, col(ChannelRow.id) == PublicationRow.channel_id)
            .where(col(PublicationRow.version_id).in_(versions), col(PublicationRow.state) != "removed")
        )
        async with self._database.snapshot() as session:
            own, shared = await _contents_of(session, target.documents)
            readings = await session.scalars(
                select(col(ReadingRow.id)).where(col(ReadingRow.sha256).in_(own))
            )
            return _Contents(
                [(id, TenantName(tenant), count) for id, tenant, count in await session.execute(published)],
                await session.scalar(select(func.count()).select_from(versions.subquery())) or 0,
                own,
                shared,
                list(readings),
            )

    async def _remove_from_index(self, target: ErasureTarget, contents: _Contents) -> None:
        if target.is_whole_channel and target.channel:
            await self._index.drop_tenant(target.channel.tenant)
            return
        for publication, tenant, chunks in contents.publications:
            with suppress(UnknownTenant):
                await self._index.remove(tenant, publication, chunks + EXTRA_CHUNKS)
        if target.channel and target.documents:
            await self._index.scrub(target.channel.tenant)

    def _leaves_words(self, target: ErasureTarget) -> bool:
        return bool(target.documents) and not target.is_whole_channel and not self._index.can_scrub

    async def _others(self, target: ErasureTarget) -> int:
        """Documents that answer in the target's channel, without its own."""
        query = (
            select(func.count(col(VersionRow.document_id).distinct()))
            .select_from(PublicationRow)
            .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
            .where(col(PublicationRow.state) == "live", col(VersionRow.document_id).not_in(target.documents))
            .where(col(PublicationRow.channel_id) == (target.channel.id if target.channel else None))
        )
        return int((await self._database.rows(query))[0][0])

    async def _rebuild_index(self, target: ErasureTarget) -> None:
        """The reconciler finds that all of it is lost, and ends the rebuild when nothing is."""
        if target.channel:
            await self._rebuilds.begin(target.channel.id)
            await self._index.drop_tenant(target.channel.tenant)

    async def _remove_files(self, contents: _Contents, report: ErasureReport) -> None:
        """Counted as they lie on the disk; nothing arrives while blobs go that somebody may want again."""
        async with self._blobs.removing():
            async with self._database.transaction() as session:
                wanted = await session.scalars(
                    select(col(VersionRow.sha256))
                    .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
                    .where(col(VersionRow.sha256).in_(contents.own), col(DocumentRow.state) != "deleted")
                )
                dead = contents.own - set(wanted)
                own = select(col(ReadingRow.id)).where(col(ReadingRow.sha256).in_(dead))
                readings = list(await session.scalars(own))
                await session.execute(
                    delete(PublicationRow).where(col(PublicationRow.reading_id).in_(readings))
                )
                await session.execute(delete(ReadingRow).where(col(ReadingRow.id).in_(readings)))
            report.pictures = await asyncio.to_thread(self._blobs.pictures_of, dead)
            await run_in_thread(lambda: self._blobs.remove_all(dead))
        for reading in readings:
            await self._files.remove(reading)
        await asyncio.to_thread(self._blobs.sweep)
        report.blobs, report.readings = len(dead), len(readings)


def _report(rows: dict[str, int], target: ErasureTarget, contents: _Contents) -> ErasureReport:
    counts = rows | {
        "document": len(target.documents),
        "version": contents.versions,
        "channel": int(target.is_whole_channel),
    }
    return ErasureReport(
        rows={table: count for table, count in counts.items() if count},
        publications=len(contents.publications),
        shared=len(contents.shared),
    )


async def _contents_of(
    session: AsyncSession, documents: Collection[UUID]
) -> tuple[frozenset[str], frozenset[str]]:
    """(contents that these documents alone have, those that others have, too)."""
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


async def _forget_documents(session: AsyncSession, documents: Collection[UUID], contents: _Contents) -> None:
    """Their rows, once nothing else speaks of them."""
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
    unused = delete(BlobRow).where(col(BlobRow.sha256).in_(contents.own), ~has_version, ~has_reading)
    await session.execute(unused)


async def _forget_channel(session: AsyncSession, channel_id: int) -> None:
    """Its folders and its name; without them its row stays while a message there is to be updated."""
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
    for table in (NoticeRow, ChannelMoveRow):
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
        row.left_at = utc_now()  # so that the row goes, too, unless it speaks again
