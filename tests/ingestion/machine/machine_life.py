"""A run of the ingestion: the real facade, with ticks and steps called one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from harness.crash_points import arm
from harness.lasting_pool import lasting_side
from machine_faults import FailingEmbedder, FailingReader
from machine_folders import Wish
from machine_home import MachineHome

from ingestion.app import Ingestion
from ingestion.errors import IngestionError
from ingestion.jobs.worker import Worker
from ingestion.settings import IngestionSettings
from storage.errors import StorageError
from storage.folders.folder_passwords import FolderPasswords
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

# Chunk limit in tokens and embedder of each generation.
GENERATIONS = ((50, "vectors_one"), (50, "vectors_two"), (60, "vectors_one"))


class Crash(BaseException):
    """A simulated crash: no handler may stop it, and no cleanup follows."""


class HandSchedule:
    """A scheduler that ticks on demand and ignores the same errors as the real one."""

    def __init__(self) -> None:
        self._ticks: dict[str, Callable[[], Awaitable[object]]] = {}

    def start(self) -> None:
        """Do nothing: see ``tick``."""

    def every(self, seconds: float, name: str, tick: Callable[[], Awaitable[object]]) -> None:
        """Register a tick."""
        self._ticks[name] = tick

    def bring_forward(self, name: str, seconds: float) -> None:
        """Ignore: the test decides when a tick runs."""

    def remove(self, name: str) -> None:
        """Remove a tick."""
        del self._ticks[name]

    async def stop(self) -> None:
        """Remove all ticks."""
        self._ticks.clear()

    async def tick(self, prefix: str) -> None:
        """Run every tick whose name has this prefix once."""
        for name in [name for name in self._ticks if name.startswith(prefix)]:
            with suppress(StorageError, IngestionError):
                await self._ticks[name]()


class HandWorker(Worker[Any]):
    """A worker that works on demand only."""

    def start(self) -> None:
        """Do nothing: see ``drain``."""


class Life:
    """A run of an ingestion from start to stop or crash."""

    def __init__(self, home: MachineHome, wish: Wish, generation: int) -> None:
        """Read in one of ``GENERATIONS``."""
        self.generation = generation
        # Folder -> files that its last complete scan did not see.
        self.missed: dict[int, set[str]] = {}
        self._home = home
        self._wish = wish
        self._schedule = HandSchedule()
        self._worker: HandWorker | None = None
        chunk_tokens, embedder = GENERATIONS[generation]
        self.embedder = FailingEmbedder(embedder, home.faults)
        self._ingestion = Ingestion(
            IngestionSettings(
                chunk_tokens=chunk_tokens,
                retire_grace_seconds=60,
                sweep_grace_seconds=0,
                rest_seconds=10,
                layout=False,
            ),
            max_file_mb=1,
            database=home.database,
            blobs=home.blobs,
            files=home.files,
            pdf=FailingReader(home.bench.pdf, home.faults),
            embedder=self.embedder,
            index=home.index,
            channels=home.channels,
            passwords=FolderPasswords(home.database),
            web_sources=WebSourcesFile(home.map_file.parent),
            web_pages=WebPageStore(home.database, home.files),
            compute_pool=lasting_side(),
            make_schedule=lambda: self._schedule,
            make_worker=self._employ,
        )

    def _employ(self, *parts: Any) -> HandWorker:
        self._worker = HandWorker(*parts)
        return self._worker

    async def begin(self) -> None:
        """Start without scanning."""
        await self._ingestion.start(self._wish.inbox, self._home.map_file)

    async def end(self) -> None:
        """Stop cleanly."""
        await self._ingestion.stop()

    async def tick(self) -> None:
        """Follow the map and scan every place."""
        for name in ("folder leases", "inbox", "folder "):
            await self._schedule.tick(name)

    async def work(self) -> None:
        """Run every step that is due."""
        await self._schedule.tick("plan")
        if self._worker is not None:
            with suppress(StorageError):
                await self._worker.drain()

    async def tend(self) -> None:
        """Purge, verify and reconcile what is due."""
        for name in ("purge", "verify", "reconcile"):
            await self._schedule.tick(name)

    async def reconcile(self) -> None:
        """Reconcile now."""
        with suppress(StorageError):
            await self._ingestion.reconcile()

    async def die_at(self, where: str) -> bool:
        """Go on until a crash point is reached; return whether it was."""
        arm(where, _crash)
        try:
            await self.tick()
            await self.work()
            await self.tend()
            await self.reconcile()
        except Crash:
            return True
        finally:
            arm("")
        return False


def _crash() -> None:
    raise Crash
