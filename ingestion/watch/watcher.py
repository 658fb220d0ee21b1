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
from ingestion.watch.watched_folder import PlaceScanner, WatchedFolder
from storage.chat.channels import Channels
from storage.clock import monotonic_seconds
from storage.errors import DatabaseUnavailable
from storage.folders.folder_leases import FolderLeases
from storage.folders.folders import Folders
from storage.sql.changes import PollGate
from storage.sql.database import Database
from storage.sql.leases import is_process_dead
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


class WatchedPlace:
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
        self._scanner: PlaceScanner | None = None
        self._not_before = 0.0
        # Ids of folders that an admin paused in a chat.
        self._held: frozenset[int] = frozenset()

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
        if (held := await self._paused.current()) != self._held:
            self._held = held
            if self._scanner is not None:
                self._scanner.feed(self._active())
        if self.is_paused:
            return False
        if self._scanner is None:
            source = await run_in_thread(
                lambda: self._make_source(self.location, follows_link=not self._is_in_inbox())
            )
            self._scanner = PlaceScanner(source, self._intake, self._settings)
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
    def soon(self) -> float | None:
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
            if not one.entry.is_paused and id not in self._held
        ]


class WatchedPlaces:
    """Set of all watched locations."""

    def __init__(
        self,
        make_place: Callable[[str], WatchedPlace],
        schedule: Scheduler,
        leases: FolderLeases,
        on_taken: Callable[[], None],
    ) -> None:
        """Call ``on_taken`` after each scan that ingested something."""
        self._make_place = make_place
        self._schedule = schedule
        self._leases = leases
        self._on_taken = on_taken
        self._places: dict[str, tuple[str, WatchedPlace]] = {}
        schedule.every(leases.seconds / 3, "folder leases", leases.renew)

    async def set_targets(self, targets: Iterable[WatchTarget]) -> None:
        """Watch exactly these targets from now on.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        by_location: dict[str, list[WatchTarget]] = {}
        for one in targets:
            by_location.setdefault(one.folder.location, []).append(one)
        for location in self._places.keys() - by_location.keys():
            name, place = self._places.pop(location)
            self._schedule.drop(name)
            if await place.close():
                await self._leases.release(location)
            else:
                self._leases.stop_renewing(location)
        for location, fed in by_location.items():
            known = self._places.get(location)
            name, place = known or (f"folder {fed[0].folder.id}", self._make_place(location))
            before = place.tick_seconds
            place.feed(fed)
            self._places[location] = (name, place)
            if place.tick_seconds != before:
                self._schedule.every(place.tick_seconds, name, partial(self._tick, place, name))

    def invalidate(self) -> None:
        """Invalidate cached SQL state, as another component has changed SQL."""
        for _, place in self._places.values():
            place.invalidate()

    async def close(self) -> None:
        """Stop watching; leases that cannot be released expire."""
        places = [place for _, place in self._places.values()]
        have_ended = await asyncio.gather(*(place.close() for place in places))
        for place, has_ended in zip(places, have_ended, strict=True):
            if not has_ended:
                self._leases.stop_renewing(place.location)
        with suppress(DatabaseUnavailable):
            await self._leases.release()

    async def _tick(self, place: WatchedPlace, name: str) -> None:
        """Scan a location if it is due and this process holds its lease."""
        if place.is_paused:
            return
        if not self._leases.holds(place.location):
            if not await self._leases.acquire(place.location):
                return
            place.invalidate()
        if await place.tick():
            self._on_taken()
        if (seconds := place.soon) is not None:
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
        self._places: WatchedPlaces | None = None

    async def start(
        self, inbox: Path, folder_map: Path | None, schedule: Scheduler, on_taken: Callable[[], None]
    ) -> None:
        """Start watching; call ``on_taken`` after each scan that ingested something.

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
        self._places = places = WatchedPlaces(self._make_place, schedule, leases, on_taken)
        await places.set_targets(targets)

        async def follow() -> None:
            if (changed := await watch_list.follow()) is not None:
                await places.set_targets(changed)

        schedule.every(self._settings.scan_seconds, "inbox", follow)

    def invalidate(self) -> None:
        """Invalidate cached SQL state, as another component has changed SQL."""
        if self._places is not None:
            self._places.invalidate()

    async def stop(self) -> None:
        """Release all locations; the schedule has stopped already."""
        places, self._places = self._places, None
        if places is not None:
            await places.close()

    def _make_place(self, location: str) -> WatchedPlace:
        return WatchedPlace(location, self._folders, self._intake, self._settings, paused=self._paused)
