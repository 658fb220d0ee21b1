"""Reconciler: compares SQL with index, blobs and readings in both directions, and repairs differences.

SQL is the source of truth. What it calls live and the index lacks is published again; what the index holds
beyond it is removed. What the disk lost is copied or read again; what it holds beyond SQL is swept. A tenant
with a corrupt file, or one dropped for a rebuild, becomes searchable once all its live publications are back.

A server that is killed can lose vectors that it had acknowledged. After an outage the verifier counts chunks
and vectors of the latest publications, the reconciler the chunks of all.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from storage.clock import monotonic_seconds
from storage.crash_points import reach
from storage.errors import IncompletePublication, IndexUnavailable, UnknownTenant
from storage.files.blobs import Blobs
from storage.files.object_store import StoredFile
from storage.files.reading_files import ReadingFiles
from storage.index.base import Index
from storage.models import TenantName
from storage.queues.inventory import Inventory, Shards
from storage.queues.publication_queue import ExpectedPublication, PublicationQueue
from storage.task_group import keep_leased
from storage.threads import run_in_thread

# Number of latest publications that are verified.
VERIFIED_PUBLICATIONS = 200
# Maximum interval: an outage of another machine's server may go unnoticed here.
MAX_INTERVAL_SECONDS = 3600.0
# Minimum interval from the end of a run to the next one.
MIN_INTERVAL_SECONDS = 30.0
HOUR = timedelta(hours=1)
# Ordinals removed beyond the count: a crash can leave some that no filter finds.
EXTRA_ORDINALS = 200

_log = logging.getLogger(__name__)


class Verifier:
    """Verifies live publications against the index; a tick that is not due costs one ping."""

    def __init__(self, queue: PublicationQueue, index: Index) -> None:
        self._queue = queue
        self._index = index
        self._outages = 0
        self._due_at = self._rests_until = monotonic_seconds()

    async def tick(self) -> None:
        """Verify at the first tick, after each outage, and after ``MAX_INTERVAL_SECONDS``.

        The interval is as long as the last run took, and at least ``MIN_INTERVAL_SECONDS``, so that a slow
        index is not loaded further.

        Raises:
            InfrastructureError: the index or the database is unavailable; a later tick starts again.
        """
        await self._index.ping()
        outages, now = self._index.outages, monotonic_seconds()
        if now < self._rests_until or (outages == self._outages and now < self._due_at):
            return
        try:
            for publication in await self._queue.newest_live(VERIFIED_PUBLICATIONS):
                await self.verify(publication)
        finally:
            self._rests_until = monotonic_seconds() + max(MIN_INTERVAL_SECONDS, monotonic_seconds() - now)
        self._outages, self._due_at = outages, monotonic_seconds() + MAX_INTERVAL_SECONDS

    async def verify(self, one: ExpectedPublication) -> bool:
        """Count one publication; return True if it was incomplete and is published again.

        Raises:
            InfrastructureError: the index or the database is unavailable.
        """
        try:
            await self._index.commit_publication(
                one.tenant, one.id, chunks=one.objects, vectors=one.vectors, space=one.space
            )
        except (IncompletePublication, UnknownTenant):
            return await self.republish(one, logging.WARNING)
        return False

    async def republish(self, one: ExpectedPublication, level: int) -> bool:
        """Publish again what the index lost, and log it at ``level``; return False if that was done already.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        is_new = await self._queue.replace_live(one.id)
        if is_new:
            _log.log(level, "publication=%s outcome=incomplete: republishing", one.id)
        return is_new


@dataclass(slots=True)
class Repairs:
    """Repairs of one comparison; all zero if everything matched SQL."""

    # Live publications that the index had lost, at least partly.
    republished: int = 0
    # Publications in the index that SQL does not know, or knows as removed.
    orphans_removed: int = 0
    # Tenants without a channel, in an index used by this home only.
    tenants_dropped: int = 0
    # Documents whose blob was lost or damaged.
    blobs_requeued: int = 0
    # Contents missing in the object store and uploaded again from this machine.
    blobs_uploaded: int = 0
    # Readings whose files were lost or damaged.
    readings_requeued: int = 0
    # Blobs and readings on disk that nothing refers to.
    files_swept: int = 0

    def __bool__(self) -> bool:
        """True if anything was repaired."""
        return any(asdict(self).values())

    def __str__(self) -> str:
        return " ".join(f"{name}={number}" for name, number in asdict(self).items())


class Reconciler:
    """Reconciles one home, in one process at a time, with low priority."""

    def __init__(
        self,
        sql: Inventory,
        verifier: Verifier,
        index: Index,
        blobs: Blobs,
        files: ReadingFiles,
        *,
        grace_seconds: float,
        lease_seconds: float,
    ) -> None:
        """Spare files younger than ``grace_seconds`` from the sweep: they may not be in SQL yet."""
        self._sql = sql
        self._verifier = verifier
        self._index = index
        self._blobs = blobs
        self._files = files
        self._grace = grace_seconds
        self._lease = timedelta(seconds=lease_seconds)
        self._outages: int | None = None
        self._republished: set[UUID] = set()

    async def tick(self) -> Repairs | None:
        """Reconcile at the first tick, after an outage and every hour; None if another process has the lease.

        Raises:
            InfrastructureError: an engine is unavailable; the next tick starts again.
        """
        await self._index.ping()
        outages = self._index.outages
        await self.rebuild_corrupt_tenants()
        if not await self._sql.acquire_lease(self._lease, is_wanted_now=outages != self._outages):
            return None
        # After a crash the lease expires and another process takes over.
        async with keep_leased(self._lease.total_seconds(), partial(self._sql.renew_lease, self._lease)):
            repairs = await self._reconcile()
        self._outages = outages
        await self._sql.release_lease(HOUR)
        return repairs

    async def run(self) -> Repairs | None:
        """Reconcile now; None if another process does.

        Raises:
            InfrastructureError: an engine is unavailable.
        """
        self._outages = None
        return await self.tick()

    async def _reconcile(self) -> Repairs:
        repairs, started = Repairs(), time.monotonic()
        await self._compare_index(repairs)
        for shards in await self._sql.slices():
            await self._compare_blobs(shards, repairs)
            await self._compare_readings(shards, repairs)
        spent = round((time.monotonic() - started) * 1000)
        log = _log.warning if repairs else _log.info
        log("reconciled %s milliseconds=%d", repairs, spent)
        return repairs

    async def _compare_index(self, repairs: Repairs) -> None:
        held = await self._index.tenants()
        channels = await self._sql.tenants()
        for tenant, channel_id in channels.items():
            try:
                if self._index.upkeep:
                    await self._index.upkeep.verify(tenant)
                await self._compare_tenant(tenant, channel_id, repairs)
            except IndexUnavailable as error:
                await self._index.ping()  # if the ping works, only this tenant is unavailable
                _log.warning("tenant=%s outcome=not-compared cause=%s", tenant, error)
            if repairs:
                reach("amid-reconcile")
        if self._index.is_exclusive:
            for tenant in held - channels.keys():
                await self._index.drop_tenant(tenant)
                repairs.tenants_dropped += 1

    async def _compare_tenant(self, tenant: TenantName, channel_id: int, repairs: Repairs) -> None:
        """Compare a tenant; SQL's live rows are read before the index is listed, orphans are checked after
        it.

        So nothing that goes live or is removed in between counts as lost or orphaned.
        """
        live = await self._sql.live(channel_id)
        held = await self._held(tenant)
        for one in _lost(live, held):
            repairs.republished += await self._verifier.verify(one)
        for stray in await self._sql.orphans(held.keys()):
            await self._index.remove(tenant, stray, held[stray] + EXTRA_ORDINALS)
            repairs.orphans_removed += 1

    async def _held(self, tenant: TenantName) -> dict[UUID, int]:
        try:
            return await self._index.publications(tenant)
        except UnknownTenant:
            return {}

    async def rebuild_corrupt_tenants(self) -> None:
        """Publish once what corrupt and dropped tenants lost; a complete tenant becomes searchable again.

        A publication whose reading is lost, too, does not hold up the others.

        Raises:
            InfrastructureError: an engine is unavailable; the next call continues.
        """
        upkeep, rebuilds = self._index.upkeep, await self._sql.rebuilds.running()
        damaged = await upkeep.corrupt_tenants() if upkeep else set[TenantName]()
        channels = await self._sql.tenants() if damaged or rebuilds else {}
        lacking = {one: id for one, id in channels.items() if one in damaged or id in rebuilds}
        for tenant, channel_id in lacking.items():
            level = logging.WARNING if tenant in damaged else logging.INFO
            if not await self._rebuild_tenant(tenant, channel_id, level):
                continue
            if upkeep and tenant in damaged:
                await upkeep.mark_rebuilt(tenant)
            if channel_id in rebuilds:
                await self._sql.rebuilds.end(channel_id, rebuilds[channel_id])
            _log.log(level, "tenant=%s outcome=rebuilt: searchable again", tenant)
        if not lacking:
            self._republished.clear()

    async def _rebuild_tenant(self, tenant: TenantName, channel_id: int, level: int) -> bool:
        """Publish again what a tenant lacks; return True if nothing is left to wait for."""
        live = await self._sql.live(channel_id)
        if any(one.is_read and one.id in self._republished for one in live):  # already being published
            return False
        held = await self._held(tenant)
        lost = [one for one in live if held.get(one.id, 0) < one.objects]
        for one in lost:
            if not one.is_read:
                _log.warning("publication=%s outcome=not-indexed: its reading is lost", one.id)
            elif await (
                self._verifier.verify(one) if one.id in held else self._verifier.republish(one, level)
            ):
                self._republished.add(one.id)
        return not any(one.is_read for one in lost)

    async def _compare_blobs(self, shards: Shards, repairs: Repairs) -> None:
        """Compare blobs; SQL is read first, so that a blob stored during the listing is not called lost."""
        wanted = await self._sql.wanted_blobs(shards)
        held = await run_in_thread(partial(self._blobs.listed, shards))
        for sha256 in [one for one, size in wanted.items() if one not in held or held[one].size != size]:
            if await run_in_thread(partial(self._blobs.reupload, sha256)):
                repairs.blobs_uploaded += 1
                continue
            repairs.blobs_requeued += await self._sql.recopy_blob(sha256, self._blobs)
        strays = [name for name, kept in held.items() if name not in wanted and self._is_old(kept)]
        if strays:
            repairs.files_swept += await self._sql.drop_orphans(strays, self._blobs)
        await run_in_thread(partial(self._blobs.drop_stray_images, shards, held))

    async def _compare_readings(self, shards: Shards, repairs: Repairs) -> None:
        held = await self._files.listed(shards)
        known, done = await self._sql.readings(shards)
        for one in done:
            if self._files.archive and str(one.id) in held:
                continue
            is_whole = await self._files.is_whole(
                one.id,
                pages=one.pages,
                chunks=one.chunks,
                figures=one.figures,
                has_vectors=one.has_vectors,
                has_sentences=one.has_sentences,
            )
            if not is_whole:
                repairs.readings_requeued += await self._sql.requeue_reading(one.id)
        names = {str(one) for one in known}
        for name in [name for name, kept in held.items() if name not in names and self._is_old(kept)]:
            await self._files.remove_entry(name)
            repairs.files_swept += 1

    def _is_old(self, kept: StoredFile) -> bool:
        return kept.seconds >= self._grace


def _lost(live: list[ExpectedPublication], held: dict[UUID, int]) -> list[ExpectedPublication]:
    return [one for one in live if held.get(one.id, 0) != one.objects]
