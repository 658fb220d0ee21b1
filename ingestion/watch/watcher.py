"""Watcher: scans each location at its own interval, and follows changes of the watch list.

A slow or paused location delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ingestion.folder_map.inbox import WatchedInbox
from ingestion.folder_map.watch_list import FolderMap, WatchList, WatchTarget
from ingestion.jobs.scheduler import Scheduler
from ingestion.settings import IngestionSettings
from ingestion.sources import Source, open_source
from ingestion.sources.watchdog import real_path
from ingestion.watch.intake import Intake
from ingestion.watch.watched_folder import LocationScanner, WatchedFolder
from storage.chat.channels import Channels
from storage.clock import monotonic_seconds
from storage.errors import DatabaseUnavailable
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folders
from storage.sql.changes import PollGate
from storage.sql.database import Database
from storage.sql.leased_queue import is_process_dead
from storage.sql.tables import FolderRow
from storage.threads import run_in_thread

# A pause set by another process takes effect within this time.
PAUSED_SECONDS = 5.0
# Rest after a slow scan, as a multiple of its duration: scanning takes at most a tenth of the time.
REST_FACTOR = 10


class PausedFolders:
    """Folders that an admin paused in a chat, queried once for all locations."""

    def __init__(self, folders: Folders, may_have_changed: Callable[[], bool] = lambda: True) -> None:
        """Query again only if they ``may_have_changed``."""
        self._folders = folders
        self._may_have_changed = may_have_changed
        self._known: frozenset[int] = frozenset()
        self._asking = asyncio.Lock()

    async def current(self) -> frozenset[int]:
        """Return the ids of paused folders.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        async with self._asking:
            if self._may_have_changed():
                self._known = await self._folders.paused()
            return self._known


class WatchedLocation:
    """A location, the folders that it feeds, and its schedule."""

    def __init__(
        self,
        location: str,
        folders: Folders,
        intake: Intake,
        settings: IngestionSettings,
        make_source: Callable[..., Source] = open_source,
        *,
        paused: PausedFolders | None = None,
    ) -> None:
        """Prepare a location; nothing is opened before its first scan. ``paused``: shared by locations."""
        self.location = location
        # Interval of ticks; a tick may be too early for a scan.
        self.tick_seconds = 0.0
        self._folders = folders
        self._paused = paused or PausedFolders(folders)
        self._intake = intake
        self._settings = settings
        self._make_source = make_source
        self._fed: dict[int, tuple[WatchTarget, WatchedFolder]] = {}
        self._every: float | None = None
        self._scanner: LocationScanner | None = None
        self._not_before = 0.0
        # Ids of folders that an admin paused in a chat.
        self._paused_ids: frozenset[int] = frozenset()

    @property
    def is_paused(self) -> bool:
        """True if no folder of the location is to be scanned now."""
        return not self._active()

    def feed(self, targets: Sequence[WatchTarget]) -> None:
        """Feed these folders from the next scan on, with the options of their entries."""
        fed: dict[int, tuple[WatchTarget, WatchedFolder]] = {}
        for one in targets:
            before = self._fed.get(one.folder.id)
            if before is None or before[0].entry != one.entry:
                share = one.entry.ask_from_share or self._settings.ask_before_deleting_share
                away = self._settings.settle_seconds
                before = one, WatchedFolder(one.folder, self._folders, share, away_seconds=away)
            fed[one.folder.id] = before
        self._every = min((one.entry.every for one in targets if one.entry.every is not None), default=None)
        self.tick_seconds = self._every or self._settings.scan_seconds
        self._fed = fed
        if self._scanner is not None:
            self._scanner.feed(self._active())

    async def tick(self) -> bool:
        """Scan the location if it is due; return True if anything was ingested.

        Raises:
            InfrastructureError: the database, or one of the disks, does not work.
        """
        if monotonic_seconds() < self._not_before:
            return False
        if (held := await self._paused.current()) != self._paused_ids:
            self._paused_ids = held
            if self._scanner is not None:
                self._scanner.feed(self._active())
        if self.is_paused:
            return False
        if self._scanner is None:
            source = await run_in_thread(
                lambda: self._make_source(self.location, follows_link=not self._is_in_inbox())
            )
            self._scanner = LocationScanner(source, self._intake, self._settings)
            self._scanner.feed(self._active())
        begun = monotonic_seconds()
        try:
            return await self._scanner.tick()
        finally:
            took, pause = self._scanner.scan_seconds, 0.0
            if self._scanner.is_remote and self._every is None:
                pause = self._settings.share_scan_seconds
            rested = begun + took + max(pause, REST_FACTOR * took)
            self._not_before = rested - self.tick_seconds / 2  # the next tick has jitter

    @property
    def early_scan_seconds(self) -> float | None:
        """Seconds until an early next scan, if the last one left something open; else None."""
        if self._scanner is None or not self._scanner.is_waiting:
            return None
        usual = self._settings.share_scan_seconds if self._scanner.is_remote else self._settings.scan_seconds
        return max(usual, REST_FACTOR * self._scanner.scan_seconds)

    def invalidate(self) -> None:
        """Invalidate cached SQL state."""
        if self._scanner is not None:
            self._scanner.invalidate()

    async def close(self) -> bool:
        """Close the source; return True if no scan is running any more."""
        return self._scanner is None or await self._scanner.close()

    def _is_in_inbox(self) -> bool:
        """True in the inbox, whose users are no admins and must not redirect us by a symlink."""
        return any(one.folder.origin == "inbox" for one, _ in self._fed.values())

    def _active(self) -> list[WatchedFolder]:
        return [
            watched
            for id, (one, watched) in self._fed.items()
            if not one.entry.is_paused and id not in self._paused_ids
        ]


class WatchedLocations:
    """Set of all watched locations."""

    def __init__(
        self,
        make_location: Callable[[str], WatchedLocation],
        schedule: Scheduler,
        leases: FolderLeases,
        on_ingested: Callable[[], None],
    ) -> None:
        """Call ``on_ingested`` after each scan that ingested something."""
        self._make_location = make_location
        self._schedule = schedule
        self._leases = leases
        self._on_ingested = on_ingested
        self._locations: dict[str, tuple[str, WatchedLocation]] = {}
        schedule.every(leases.seconds / 3, "folder leases", leases.renew)

    async def set_targets(self, targets: Iterable[WatchTarget]) -> None:
        """Watch exactly these targets from now on.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        by_location: dict[str, list[WatchTarget]] = {}
        for one in targets:
            by_location.setdefault(one.folder.location, []).append(one)
        for location in self._locations.keys() - by_location.keys():
            name, place = self._locations.pop(location)
            self._schedule.remove(name)
            if await place.close():
                await self._leases.release(location)
            else:
                self._leases.stop_renewing(location)
        for location, fed in by_location.items():
            known = self._locations.get(location)
            name, place = known or (f"folder {fed[0].folder.id}", self._make_location(location))
            before = place.tick_seconds
            place.feed(fed)
            self._locations[location] = (name, place)
            if place.tick_seconds != before:
                self._schedule.every(place.tick_seconds, name, partial(self._tick, place, name))

    def invalidate(self) -> None:
        """Invalidate cached SQL state, as another component has changed SQL."""
        for _, place in self._locations.values():
            place.invalidate()

    async def close(self) -> None:
        """Stop watching; leases that cannot be released expire."""
        places = [place for _, place in self._locations.values()]
        have_ended = await asyncio.gather(*(place.close() for place in places))
        for place, has_ended in zip(places, have_ended, strict=True):
            if not has_ended:
                self._leases.stop_renewing(place.location)
        with suppress(DatabaseUnavailable):
            await self._leases.release()

    async def _tick(self, place: WatchedLocation, name: str) -> None:
        """Scan a location if it is due and this process holds its lease."""
        if place.is_paused:
            return
        if not self._leases.holds(place.location):
            if not await self._leases.acquire(place.location):
                return
            place.invalidate()
        if await place.tick():
            self._on_ingested()
        if (seconds := place.early_scan_seconds) is not None:
            self._schedule.bring_forward(name, seconds)


class Watcher:
    """Watcher of one inbox and one map."""

    def __init__(
        self, settings: IngestionSettings, database: Database, channels: Channels, intake: Intake, owner: str
    ) -> None:
        """Take leases as ``owner``, a name that no other process uses."""
        self._settings = settings
        self._database = database
        self._channels = channels
        self._folders = Folders(database, owner)
        gate = PollGate(database.changes, FolderRow, seconds=PAUSED_SECONDS)
        self._paused = PausedFolders(self._folders, gate.should_poll)
        self._intake = intake
        self._owner = owner
        self._locations: WatchedLocations | None = None

    async def start(
        self, inbox: Path, folder_map: Path | None, schedule: Scheduler, on_ingested: Callable[[], None]
    ) -> None:
        """Start watching; call ``on_ingested`` after each scan that ingested something.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be created.
        """
        root = Path(await run_in_thread(lambda: real_path(str(inbox))))
        mapped = FolderMap(folder_map, root, self._channels, self._folders) if folder_map else None
        seconds = self._settings.lease_seconds
        leases = FolderLeases(self._database, self._owner, seconds, is_dead=is_process_dead)
        watch_list = WatchList(WatchedInbox(root, self._channels, self._folders, leases), mapped)
        targets = await watch_list.begin()
        self._locations = places = WatchedLocations(self._make_location, schedule, leases, on_ingested)
        await places.set_targets(targets)

        async def refresh() -> None:
            if (changed := await watch_list.refresh()) is not None:
                await places.set_targets(changed)

        schedule.every(self._settings.scan_seconds, "inbox", refresh)

    def invalidate(self) -> None:
        """Invalidate cached SQL state, as another component has changed SQL."""
        if self._locations is not None:
            self._locations.invalidate()

    async def stop(self) -> None:
        """Release all locations; the schedule has stopped already."""
        places, self._locations = self._locations, None
        if places is not None:
            await places.close()

    def _make_location(self, location: str) -> WatchedLocation:
        return WatchedLocation(location, self._folders, self._intake, self._settings, paused=self._paused)
