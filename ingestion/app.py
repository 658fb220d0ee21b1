"""Facade of ingestion: watches an inbox, ingests once, runs the background work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ingestion.folder_map.inbox import channel_of_folder
from ingestion.jobs.compute_pool import ComputePool
from ingestion.jobs.scheduler import Scheduler
from ingestion.jobs.worker import Lane, OnStep, Worker
from ingestion.pipeline import lanes
from ingestion.publish.publisher import Publisher
from ingestion.publish.reconciler import Reconciler, Repairs, Verifier
from ingestion.reading.captioning import FigureDescriber, OnCall, VisionEndpoint
from ingestion.reading.chunk_jobs import ChunkingClient
from ingestion.reading.full import FillMetadata, FullReader, LayoutChunker
from ingestion.reading.generations import generations_of
from ingestion.reading.quick import QuickReader
from ingestion.reading.sentence_embedder import SentenceEmbedder
from ingestion.settings import IngestionSettings
from ingestion.sources.local import first_level
from ingestion.watch.batch_ingest import BatchIngest, FolderBatch
from ingestion.watch.intake import Intake
from ingestion.watch.lost_copies import LostCopies
from ingestion.watch.watcher import Watcher
from ingestion.web_pages.renewal import OnPage, PageIntake, WebPageRenewal, make_fetcher
from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.documents.arrivals import Arrivals
from storage.documents.ingest_status import IngestStatus, ingest_statuses
from storage.documents.progress import Progress
from storage.embeddings.base import Embedder
from storage.embeddings.vector_cache import VectorCache
from storage.erasure.eraser import Eraser
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.folders.folder_passwords import FolderPasswords
from storage.folders.folders import Folders
from storage.index.base import Index
from storage.models import Channel, Rung
from storage.pdf.pdf_process import PdfProcess
from storage.queues.inventory import Inventory
from storage.queues.local_copies import LocalCopies
from storage.queues.locked_pdfs import LockedPdfs
from storage.queues.planner import GapFinder, Generations, set_current_generations
from storage.queues.publication_queue import PublicationQueue
from storage.queues.purge import PurgeQueue
from storage.queues.reading_queue import ReadingQueue
from storage.sql.changes import POLL_SECONDS, PollGate
from storage.sql.database import Database
from storage.sql.leased_queue import MAX_BACKOFF_SECONDS, LeasedQueue, process_name
from storage.sql.tables import PublicationRow, ReadingRow
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebDomain, WebSourcesFile

WORK_SECONDS = 1.0
PLAN_SECONDS = 15.0
PURGE_SECONDS = 60.0
LEFT_CHANNELS_SECONDS = 600.0
VERIFY_SECONDS = 15.0
WEB_SECONDS = 60.0
REBUILD_SECONDS = 0.2
SEED_SECONDS = 0.5
WEB_SOURCES_SECONDS = 2.0
# How often to check whether a comparison is due; ``reconciler.py`` sets how often one runs.
RECONCILE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Outcome of an ingestion."""

    files: int
    # Searchable files.
    live: int
    # Searchable pages.
    pages: int
    # (file, message for an admin) of each unreadable file.
    quarantined: tuple[tuple[str, str], ...]
    # Files that become searchable after OCR.
    waiting_for_ocr: tuple[str, ...] = ()
    # Loose PDFs that belong to no channel.
    skipped: tuple[str, ...] = ()


def result_of(statuses: Sequence[IngestStatus]) -> IngestResult:
    """Return the summary of these documents' statuses."""
    return IngestResult(
        files=len(statuses),
        live=sum(one.rung is not None for one in statuses),
        pages=sum(one.pages for one in statuses),
        quarantined=tuple((one.file, one.reason) for one in statuses if one.reason is not None),
        waiting_for_ocr=tuple(one.file for one in statuses if one.waits_for_ocr),
    )


class Ingestion:
    """Ingestion service; several processes may share a home. ``on_step`` is called with finished steps."""

    # Reading versions to produce.
    generations: Generations
    on_step: OnStep | None = None
    _schedule: Scheduler | None = None
    # Like ``_schedule``, set only between ``start`` and ``stop``.
    _worker: Worker[Any] | None = None

    def __init__(
        self,
        settings: IngestionSettings,
        *,
        max_file_mb: int,
        database: Database,
        blobs: Blobs,
        files: ReadingFiles,
        pdf: PdfProcess,
        embedder: Embedder,
        index: Index,
        channels: Channels,
        passwords: FolderPasswords,
        web_sources: WebSourcesFile,
        web_pages: WebPageStore,
        contact: str | None = None,
        vision: VisionEndpoint | None = None,
        fill_metadata: FillMetadata | None = None,
        compute_pool: ComputePool | None = None,
        make_schedule: Callable[[], Scheduler] = Scheduler,
        make_worker: Callable[..., Worker[Any]] = Worker,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
    ) -> None:
        """Wire the parts together; nothing runs before ``start`` or ``ingest``.

        Args:
            max_file_mb: larger files are refused before they are copied.
            database, blobs, files, pdf, embedder, index, channels, passwords: open; the caller closes them.
            web_sources, web_pages: approved web pages, and when they are fetched.
            contact: told to web servers, unless the settings name a contact.
            vision: describes figures; None: figures get no description.
            fill_metadata: asks a model for missing metadata; None: there is none.
            compute_pool: side processes, closed with this object; default: a new pool.
            max_backoff_seconds: longest backoff before a failed step is retried.
        """
        self._settings, self._channels = settings, channels
        self._web_sources, self._web_store = web_sources, web_pages
        self._database, self._blobs, self._files = database, blobs, files
        self.generations = generations_of(settings, embedder)
        owner, seconds, longest = process_name(), settings.lease_seconds, max_backoff_seconds
        self._readings = LeasedQueue(database, ReadingRow, owner, seconds, max_backoff_seconds=longest)
        published = LeasedQueue(database, PublicationRow, owner, seconds, max_backoff_seconds=longest)
        self._gaps = GapFinder(database, self.generations)
        self._locked = LockedPdfs(database, passwords, self.generations, blobs=blobs, pdf=pdf)
        self._folders, self._vectors = Folders(database), VectorCache(database)
        arrivals = Arrivals(database, self.generations, blobs)
        self._intake = Intake(arrivals, blobs, max_file_mb * 1024 * 1024)
        self._watcher = Watcher(settings, database, channels, self._intake, owner)
        self._purge = PurgeQueue(published, settings.retire_grace_seconds, settings.delete_grace_seconds)
        self._publications = publications = PublicationQueue(published)
        self._compute_pool = compute_pool or ComputePool(settings.read_workers)
        self._web_pages = WebPageRenewal(
            web_sources,
            web_pages,
            make_fetcher(settings, contact),
            PageIntake(web_pages, arrivals, blobs, pdf),
            channels,
        )
        self._make_schedule, self._make_worker = make_schedule, make_worker
        publisher = Publisher(
            publications, self._purge, files, index, compute_pool=self._compute_pool, locked_pdfs=self._locked
        )
        self._vision, self._fill_metadata = vision, fill_metadata
        self._make_lanes = self._lanes_of(publisher, pdf, embedder, vision)
        self._verifier = Verifier(publications, index)
        self._eraser = Eraser(database, blobs=blobs, files=files, index=index)
        self._copies = LocalCopies(database, blobs, files)
        inventory = Inventory(database)
        self._rebuilds = inventory.rebuilds
        self.lost_copies = LostCopies(inventory, self._folders, self._intake, settings)
        self._reconciler = Reconciler(
            inventory,
            self._verifier,
            index,
            blobs,
            files,
            grace_seconds=settings.sweep_grace_seconds,
            lease_seconds=settings.lease_seconds,
        )

    def _lanes_of(
        self, publisher: Publisher, pdf: PdfProcess, embedder: Embedder, vision: VisionEndpoint | None
    ) -> Callable[[Rung, asyncio.Event], list[Lane[Any]]]:
        queue = ReadingQueue(self._readings, self.generations)
        settings = self._settings
        chunking_client = ChunkingClient(
            self._compute_pool,
            self._files,
            embedder,
            settings.chunk_tokens,
            reads_pictures=settings.reads_pictures,
        )
        ocr_pages = settings.ocr_pages if settings.reads_pictures else 0
        layout_chunker = LayoutChunker(
            self._blobs, pdf, chunking_client, reads_layout=settings.layout, ocr_pages=ocr_pages
        )
        return partial(
            lanes,
            QuickReader(queue, self._blobs, self._files, pdf, chunking_client),
            FullReader(
                queue,
                self._files,
                embedder,
                self._vectors,
                layout_chunker,
                describe=FigureDescriber(self._blobs, pdf, vision).describe if vision else None,
                sentences=SentenceEmbedder(embedder, VectorCache(self._database, of_sentences=True))
                if settings.sentence_vectors
                else None,
                fill_metadata=self._fill_metadata,
            ),
            publisher,
            read_workers=settings.read_workers,
        )

    def watch_vision(self, on_call: OnCall) -> None:
        """Call ``on_call`` for each call to the vision model, if there is one."""
        if self._vision:
            self._vision.on_call = on_call

    async def start(self, inbox: Path, folder_map: Path | None = None) -> None:
        """Watch an inbox and the folders of a folder map, and follow changes to both.

        Each first-level folder of the inbox feeds the channel of that name.

        Args:
            folder_map: path of ``folders.toml``; it need not exist.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be made.
        """
        async with self._database.transaction() as session:
            await set_current_generations(session, self.generations)
        worker, schedule = self._start_worker(Rung.FULL)
        await self._watcher.start(inbox, folder_map, schedule, worker.wake)

        async def reconcile() -> None:
            self._rescan_after(await self._reconciler.tick())

        schedule.every(PURGE_SECONDS, "purge", self.purge)
        schedule.every(VERIFY_SECONDS, "verify", self._verifier.tick)
        schedule.every(VERIFY_SECONDS, "renew", self._reconciler.rebuild_corrupt_tenants)
        schedule.every(RECONCILE_SECONDS, "reconcile", reconcile)
        schedule.every(LEFT_CHANNELS_SECONDS, "left channels", self._erase_left)
        schedule.every(WEB_SECONDS, "web pages", self._web_pages.tick)
        schedule.every(WEB_SOURCES_SECONDS, "web sources", self._web_sources.current)

    @property
    def web_fetches(self) -> dict[str, int]:
        """Fetches of approved web pages since this process started, by outcome."""
        return self._web_pages.fetches

    @property
    def vector_lookups(self) -> tuple[int, int]:
        """Cache (hits, misses) of chunk vectors since this process started."""
        return self._vectors.hits, self._vectors.misses

    def fetch_web_pages(self, domain: WebDomain) -> asyncio.Task[None]:
        """Fetch the due pages of a domain now, for questions; see ``WebPageRenewal.fetch_soon``."""
        return self._web_pages.fetch_soon(domain)

    async def seed_web_pages(self, domains: Sequence[WebDomain], on_page: OnPage) -> None:
        """Fetch all pages of domains that are not fresh, and wait until they are searchable.

        Raises:
            InfrastructureError: an engine or a disk does not work.
        """
        rung = Rung.FULL if self.generations.full else Rung.QUICK
        folder = await self._web_store.folder()
        async with self._working(rung) as worker:
            await self._web_pages.prefetch(domains, on_page)
            worker.wake()
            while True:
                found = await ingest_statuses(self._database, folder.id, self.generations)
                if all(one.has_reached(rung) for one in found):
                    return
                await asyncio.sleep(SEED_SECONDS)

    async def stop(self) -> None:
        """Stop watching and working; leases of unfinished steps are released for the next start."""
        schedule, self._schedule = self._schedule, None
        worker, self._worker = self._worker, None
        if schedule is not None:
            await schedule.stop()
        await self._watcher.stop()
        if worker is not None:
            await worker.stop()
        await self._web_pages.aclose()
        await self._compute_pool.aclose()

    async def ingest(
        self,
        path: Path,
        channel: Channel,
        wait: Rung,
        on_progress: Callable[[Progress], None],
    ) -> IngestResult:
        """Ingest one folder or file into a channel, once, until everything has reached rung ``wait``.

        Never deletes; a second run adds and replaces. Unreadable files are listed in the result.

        Raises:
            SettingsError: the path is a file with the name of an unsupported type.
            InfrastructureError: the path cannot be listed, or a disk or the database fails.
        """
        run = self._batch_ingest()
        return await self._finish(run, [await run.batch(path, channel)], wait, on_progress)

    async def ingest_root(
        self, root: Path, wait: Rung, on_progress: Callable[[Progress], None]
    ) -> IngestResult:
        """Ingest each first-level folder of ``root`` into the channel of its name, like ``ingest``.

        Raises:
            InfrastructureError, OSError: as ``ingest``.
        """
        names, skipped = await asyncio.to_thread(first_level, root)
        run = self._batch_ingest()
        batches = []
        for name in names:
            if (channel := await channel_of_folder(self._channels, name)) is not None:
                batches.append(await run.batch(root / name, channel))
        result = await self._finish(run, batches, wait, on_progress)
        return replace(result, skipped=tuple(skipped))

    def _batch_ingest(self) -> BatchIngest:
        return BatchIngest(self._database, self._folders, self._intake, self.generations, self._settings)

    async def _finish(
        self,
        run: BatchIngest,
        batches: list[FolderBatch],
        wait: Rung,
        on_progress: Callable[[Progress], None],
    ) -> IngestResult:
        rung = wait if self.generations.full else Rung.QUICK
        await self._locked.tick()
        if rung is Rung.FULL:
            await self._gaps.tick()
        async with self._working(rung) as worker:
            result = result_of(await run.finish(batches, rung, on_progress, worker.wake))
        if await self._rebuilds.running():  # an earlier rebuild may have been interrupted
            await self.rebuild_index(lambda published, total: None)
        return result

    @asynccontextmanager
    async def _working(self, rung: Rung) -> AsyncIterator[Worker[Any]]:
        """Yield the running worker, else a temporary one."""
        if self._worker is not None:
            yield self._worker
            return
        try:
            yield self._start_worker(rung)[0]
        finally:
            await self.stop()

    def _start_worker(self, rung: Rung) -> tuple[Worker[Any], Scheduler]:
        idle = asyncio.Event()
        steps = self._make_lanes(rung, idle)
        self._worker = worker = self._make_worker(steps, idle, self.on_step)
        self._schedule = schedule = self._make_schedule()

        gate = PollGate(
            self._database.changes,
            ReadingRow,
            PublicationRow,
            seconds=min(POLL_SECONDS, self._readings.seconds),
        )

        async def wake() -> None:
            if gate.should_poll():
                worker.wake()

        worker.start()
        schedule.start()
        schedule.every(PLAN_SECONDS, "plan", self._gaps.tick)
        schedule.every(PLAN_SECONDS, "unlock", self._locked.tick)
        schedule.every(WORK_SECONDS, "work", wake)
        return worker, schedule

    async def reconcile(self) -> Repairs | None:
        """Compare SQL, index and disk now and repair differences; None while another process does it.

        Raises:
            InfrastructureError: an engine is unavailable.
        """
        return self._rescan_after(await self._reconciler.run())

    async def rebuild_index(self, on_progress: Callable[[int, int], None]) -> None:
        """Publish what SQL calls live and the index lacks, and wait until all of it is searchable.

        Args:
            on_progress: called with (published, total) readings.

        Raises:
            InfrastructureError: an engine is unavailable; ``start`` resumes the rebuild.
        """
        await self.reconcile()
        total = await self._publications.pending()
        async with self._working(Rung.FULL):
            while waiting := await self._publications.pending():
                on_progress(max(0, total - waiting), total)
                await asyncio.sleep(REBUILD_SECONDS)
        await self._reconciler.rebuild_corrupt_tenants()
        on_progress(total, total)

    def _rescan_after(self, repairs: Repairs | None) -> Repairs | None:
        """Make the next scans reload known files from SQL, as repairs may have found lost copies."""
        if repairs:
            self._watcher.invalidate()
        return repairs

    async def _erase_left(self) -> None:
        """Erase the channels that the bot left more than ``left_days`` ago."""
        await self._eraser.erase_left_channels(
            self._channels, utc_now() - timedelta(days=self._settings.left_days)
        )

    async def purge(self) -> None:
        """Purge deleted contents past their grace period, old readings, stray copies and unused vectors."""
        dropped = await self._purge.drop_contents(self._blobs)
        dropped += await self._purge.drop_older_generations(self.generations)
        for reading in dropped:
            await self._files.remove(reading)
        await asyncio.to_thread(self._blobs.sweep)
        await self._copies.evict_unknown()
        await self._vectors.prune()
