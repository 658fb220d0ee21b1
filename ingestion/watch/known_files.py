"""Cache of one folder's documents between scans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ingestion.sources.base import FileStat, ScannedFile
from storage.documents.arrivals import StoredArrival
from storage.folders.folders import Folder, Folders, KnownDocument


class KnownFile(NamedTuple):
    """A document and its file's stat when it was last stored or refused."""

    document: UUID
    stat: FileStat | None
    # Refused earlier, perhaps under another limit or other permissions; or its copy was lost.
    is_untried: bool = False

    @classmethod
    def of(cls, row: KnownDocument) -> KnownFile:
        """Convert a row."""
        return cls(row.id, FileStat(**row.stat) if row.stat else None, row.is_refused)


class KnownFolder:
    """Documents of one folder that are not deleted, by file; SQL is the source of truth."""

    def __init__(self, folder: Folder, folders: Folders) -> None:
        self.folder = folder
        # Owner of our lease on the location; None without a lease.
        self.owner = folders.owner
        self._folders = folders
        self._documents: dict[str, KnownFile] | None = None

    @property
    def documents(self) -> Mapping[str, KnownFile]:
        """Documents as of the last load, with changes noted since."""
        return self._documents or {}

    async def load(self) -> None:
        """Load the documents from SQL, unless they are cached.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        if self._documents is None:
            rows = await self._folders.documents(self.folder.id)
            self._documents = {file: KnownFile.of(row) for file, row in rows.items()}

    def invalidate(self) -> None:
        """Invalidate the cache; the next ``load`` asks SQL."""
        self._documents = None

    def is_unchanged(self, seen: ScannedFile) -> bool:
        """True if a file has the stat that it had when it was last stored or refused."""
        known = self.documents.get(seen.file)
        return known is not None and known.stat == seen.stat and not known.is_untried

    def note(self, stored: Iterable[StoredArrival], seen: Mapping[str, ScannedFile]) -> None:
        """Add stored files to the cache; after a rename it is invalid, as the old name is free."""
        for one in stored:
            if one.outcome in ("renamed", "back"):
                self.invalidate()
            if self._documents is not None:
                self._documents[one.file] = KnownFile(one.document, seen[one.file].stat)
