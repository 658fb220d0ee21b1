"""Watches everything that admins want watched, while what they want changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ingestion.settings import IngestionSettings
from ingestion.sources.patience import real_path
from ingestion.watch.intake import Intake
from ingestion.watch.places import WatchedPlace, WatchedPlaces
from ingestion.wish.channel_folders import WatchedInbox
from ingestion.wish.mapped import FolderMap
from ingestion.wish.wishes import WatchList
from ingestion.work.aside import run_in_thread
from ingestion.work.lease_owner import is_surely_dead
from ingestion.work.schedule import Scheduler
from storage.channels import Channels
from storage.database import Database
from storage.folder_leases import FolderLeases
from storage.folders import Folders


class Watcher:
    """The folders of one inbox and one map."""

    def __init__(
        self, settings: IngestionSettings, database: Database, channels: Channels, intake: Intake, owner: str
    ) -> None:
        """Watch for ``owner``, a name that no other process uses."""
        self._settings = settings
        self._database = database
        self._channels = channels
        self._folders = Folders(database, owner)
        self._intake = intake
        self._owner = owner
        self._places: WatchedPlaces | None = None

    async def start(
        self, inbox: Path, folder_map: Path | None, schedule: Scheduler, on_taken: Callable[[], None]
    ) -> None:
        """Begin to look; call ``on_taken`` whenever a look took something.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be made.
        """
        root = Path(await run_in_thread(lambda: real_path(str(inbox))))
        mapped = FolderMap(folder_map, root, self._channels, self._folders) if folder_map else None
        seconds = self._settings.lease_seconds
        leases = FolderLeases(self._database, self._owner, seconds, is_dead=is_surely_dead)
        watch_list = WatchList(WatchedInbox(root, self._channels, self._folders, leases), mapped)
        targets = await watch_list.begin()
        self._places = places = WatchedPlaces(self._make_place, schedule, leases, on_taken)
        await places.set_targets(targets)

        async def follow() -> None:
            if (changed := await watch_list.follow()) is not None:
                await places.set_targets(changed)

        schedule.every(self._settings.scan_seconds, "inbox", follow)

    def invalidate(self) -> None:
        """Ask SQL again at the next look at each place: somebody else has changed it."""
        if self._places is not None:
            self._places.invalidate()

    async def stop(self) -> None:
        """Leave the places to others; the schedule has stopped."""
        places, self._places = self._places, None
        if places is not None:
            await places.close()

    def _make_place(self, location: str) -> WatchedPlace:
        return WatchedPlace(location, self._folders, self._intake, self._settings)
