"""Watches everything that admins want watched, while what they want changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ingestion.settings import IngestionSettings
from ingestion.sources.patience import real_path
from ingestion.watch.intake import Intake
from ingestion.watch.places import Place, Places
from ingestion.wish.channel_folders import WatchedInbox
from ingestion.wish.mapped import MappedFolders
from ingestion.wish.wishes import Wishes
from ingestion.work.aside import run_aside
from ingestion.work.lease_owner import is_surely_dead
from ingestion.work.schedule import Schedule
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
        self._places: Places | None = None

    async def start(
        self, inbox: Path, folder_map: Path | None, schedule: Schedule, on_taken: Callable[[], None]
    ) -> None:
        """Begin to look; call ``on_taken`` whenever a look took something.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the inbox is new and cannot be made.
        """
        root = Path(await run_aside(lambda: real_path(str(inbox))))
        mapped = MappedFolders(folder_map, root, self._channels, self._folders) if folder_map else None
        seconds = self._settings.lease_seconds
        leases = FolderLeases(self._database, self._owner, seconds, is_dead=is_surely_dead)
        wishes = Wishes(WatchedInbox(root, self._channels, self._folders, leases), mapped)
        wanted = await wishes.begin()
        self._places = places = Places(self._make_place, schedule, leases, on_taken)
        await places.arrange(wanted)

        async def follow() -> None:
            if (changed := await wishes.follow()) is not None:
                await places.arrange(changed)

        schedule.every(self._settings.scan_seconds, "inbox", follow)

    def look_afresh(self) -> None:
        """Ask SQL again at the next look at each place: somebody else has changed it."""
        if self._places is not None:
            self._places.look_afresh()

    async def stop(self) -> None:
        """Leave the places to others; the schedule has stopped."""
        places, self._places = self._places, None
        if places is not None:
            await places.close()

    def _make_place(self, location: str) -> Place:
        return Place(location, self._folders, self._intake, self._settings)
