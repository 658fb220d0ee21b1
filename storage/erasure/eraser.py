"""Erases documents, channels and people's words from SQL, index and files, before their retention ends.

First everything is hidden, so that nothing new is made of it, and running workers lose their leases. Then
words, index objects and files are removed, and the rows last: an interrupted erasure finds them again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy import delete, exists, func, select, update
from sqlmodel import col

from storage.chat.channels import PLATFORM, Channels
from storage.clock import utc_now
from storage.erasure.erased_rows import contents_of, forget_channel, forget_documents
from storage.erasure.targets import ErasureTarget, channel_target, document_target, words_of
from storage.errors import StillInFolder, UnknownTenant
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.index.base import Index
from storage.models import Channel, TenantName
from storage.queues.index_rebuilds import IndexRebuilds
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.leased_queue import revoke
from storage.sql.tables import (
    ChannelRow,
    DocumentRow,
    PublicationRow,
    ReadingRow,
    VersionRow,
)
from storage.threads import run_in_thread

# Time for running work to end: leases are checked every five seconds, quick answers take three.
SETTLE_SECONDS = 15.0
# Ordinals removed beyond the number counted: a crash may leave some that no filter finds.
EXTRA_CHUNKS = 200
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ErasureReport:
    """Counts of what an erasure removed, or would remove."""

    # By table: rows deleted, or stripped of their words.
    rows: dict[str, int] = field(default_factory=dict)
    blobs: int = 0
    readings: int = 0
    # Images of pages and figures.
    pictures: int = 0
    # Publications in the index.
    publications: int = 0
    # Other documents of the channel that are added to a new index.
    reindexed: int = 0
    # Other documents of the channel that cannot be added to a new index, so that the old one stays.
    hindering: int = 0
    # Chat messages that will say that their answer was removed.
    messages: int = 0
    # Contents that stay, because other documents have them, too.
    shared: int = 0
    seconds: float = 0.0

    @property
    def texts(self) -> int:
        """Number of texts that quote what is erased."""
        return sum(
            count for table, count in self.rows.items() if table not in ("document", "version", "channel")
        )


@dataclass(frozen=True, slots=True)
class _Contents:
    """Contents of a target's documents."""

    # (publication, tenant, number of chunks and figures).
    publications: Sequence[tuple[UUID, TenantName, int]] = ()
    versions: int = 0
    # Contents that no other document needs.
    own: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    # Readings of the own contents.
    readings: Sequence[UUID] = ()


class Eraser:
    """Erases a target everywhere."""

    def __init__(
        self,
        database: Database,
        *,
        blobs: Blobs,
        files: ReadingFiles,
        index: Index,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        """Wait ``settle_seconds`` for running work; 0 if no other process works."""
        self._database = database
        self._blobs = blobs
        self._files = files
        self._index = index
        self._rebuilds = IndexRebuilds(database)
        self._settle_seconds = settle_seconds

    async def preview(self, target: ErasureTarget, *, rebuilds_index: bool = False) -> ErasureReport:
        """Return what ``erase`` would remove; change nothing.

        Raises:
            DatabaseUnavailable: the database does not work.
            BlobsUnavailable: the blob store does not work.
        """
        words, contents = await words_of(self._database, target), await self._contents(target)
        report = _report(words.counts(), target, contents)
        report.blobs, report.readings = len(contents.own), len(contents.readings)
        report.pictures = await run_in_thread(partial(self._blobs.images_of, contents.own))
        if rebuilds_index:
            await self._count_others(target, report)
        return report

    async def erase(
        self, target: ErasureTarget, action: AuditedAction, *, rebuilds_index: bool = False
    ) -> ErasureReport:
        """Erase a target; when this returns, nothing of it is left on disk. Repeating it completes it.

        An index that cannot be scrubbed keeps a document's words, though no search finds them.
        ``rebuilds_index`` drops the channel's index for that; users there are asked to try again until a
        process's ingestion has added the other documents to a new one.

        Raises:
            InfrastructureError: an engine is unreachable; hidden rows stay so, and the next call continues.
        """
        started = time.monotonic()
        was_busy = await self._hide(target, action)
        await asyncio.sleep(max(self._settle_seconds, SETTLE_SECONDS if was_busy else 0))
        words, contents = await words_of(self._database, target), await self._contents(target)
        report = _report(words.counts(), target, contents)
        report.messages = await words.erase(self._database, told=True)
        await self._remove_from_index(target, contents)
        if rebuilds_index:
            await self._count_others(target, report)
            await self._rebuild_index(target, report)
        await self._remove_files(contents, report)
        async with self._database.transaction() as session:
            await forget_documents(session, target.documents, contents.own)
            if target.is_whole_channel and target.channel:
                has_new = exists().where(col(DocumentRow.channel_id) == target.channel.id)
                if not await session.scalar(select(has_new)):  # else a new file has arrived
                    await forget_channel(session, target.channel.id)
            elif target.conversations:
                talked = update(ChannelRow).where(col(ChannelRow.id).in_(target.conversations))
                # A left channel whose folder is gone by the end of another grace period is then erased
                # wholly.
                await session.execute(
                    talked.where(col(ChannelRow.left_at).is_not(None)).values(left_at=utc_now())
                )
                # A direct chat's name is personal; a name that an admin gave is not.
                nameless = talked.where(col(ChannelRow.named_by) == PLATFORM)
                await session.execute(nameless.values(name=ChannelRow.tenant, named_by=None))
        await self._database.purge_deleted()
        report.seconds = round(time.monotonic() - started, 1)
        _log.info("erased=%s milliseconds=%d", target.subject, report.seconds * 1000)
        return report

    async def erase_document(self, channel: Channel, file: str, action: AuditedAction | None) -> int:
        """Erase a channel's file, or only preview it without an action; return how many texts quote it.

        Raises:
            SettingsError: there is no such file.
            StillInFolder: it lies in a watched folder.
            InfrastructureError: as ``erase``.
        """
        target = await document_target(self._database, channel, file)
        return (await (self.erase(target, action) if action else self.preview(target))).texts

    async def erase_left_channels(self, channels: Channels, before: datetime) -> None:
        """Erase channels that the bot left before then; only the conversations if the folder still exists.

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
        """Hide the target, revoking all leases on it; return True if a worker held one."""
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
                was_busy |= revoke(row)
                if row.state != "retired":
                    row.state, row.retired_at = "retired", now
            own = (await contents_of(session, target.documents))[0]
            for reading in await session.scalars(
                select(ReadingRow).where(col(ReadingRow.sha256).in_(own), col(ReadingRow.state) == "waiting")
            ):
                was_busy |= revoke(reading)
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
            own, shared = await contents_of(session, target.documents)
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
        if target.channel and target.documents and self._index.upkeep:
            await self._index.upkeep.purge_deleted(target.channel.tenant)

    def _keeping_words(self, target: ErasureTarget) -> Channel | None:
        """Return the channel whose index keeps removed words; None if it is dropped, or can be scrubbed."""
        is_kept = target.documents and not target.is_whole_channel and not self._index.upkeep
        return target.channel if is_kept else None

    async def _count_others(self, target: ErasureTarget, report: ErasureReport) -> None:
        """Count the documents for a new index of the channel."""
        if (channel := self._keeping_words(target)) is None:
            return
        has_reading = col(ReadingRow.state) == "done"
        query = (
            select(has_reading, func.count(col(VersionRow.document_id).distinct()))
            .select_from(PublicationRow)
            .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
            .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
            .where(col(PublicationRow.state) == "live", col(PublicationRow.channel_id) == channel.id)
            .where(col(VersionRow.document_id).not_in(target.documents))
            .group_by(has_reading)
        )
        async with self._database.snapshot() as session:
            counts = {is_read: count for is_read, count in await session.execute(query)}
        report.hindering = counts.get(False, 0)
        report.reindexed = 0 if report.hindering else counts.get(True, 0)

    async def _rebuild_index(self, target: ErasureTarget, report: ErasureReport) -> None:
        """Drop the index; the reconciler restores what is missing, then ends the rebuild."""
        if (channel := self._keeping_words(target)) is None or report.hindering:
            return
        if report.reindexed:
            await self._rebuilds.begin(channel.id)
        await self._index.drop_tenant(channel.tenant)
        if report.reindexed:  # once more: a reconciler that saw the old index whole may have ended the first
            await self._rebuilds.begin(channel.id)

    async def _remove_files(self, contents: _Contents, report: ErasureReport) -> None:
        """Remove the files, counted as found on disk; block additions, as a blob may be needed again."""
        report.pictures = await run_in_thread(partial(self._blobs.images_of, contents.own))
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
