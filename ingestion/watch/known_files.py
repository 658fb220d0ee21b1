"""What SQL knows of one folder, kept in memory between two scans of it."""

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
    # Refused before we came, when a limit or our rights may have been others; or lost since.
    is_untried: bool = False

    @classmethod
    def of(cls, row: KnownDocument) -> KnownFile:
        """As SQL has it."""
        return cls(row.id, FileStat(**row.stat) if row.stat else None, row.is_refused)


class KnownFolder:
    """The documents of one folder that are not deleted, by file; SQL stays the truth."""

    def __init__(self, folder: Folder, folders: Folders) -> None:
        self.folder = folder
        # Under which name the place is leased to us; None when it is not.
        self.owner = folders.owner
        self._folders = folders
        self._documents: dict[str, KnownFile] | None = None

    @property
    def documents(self) -> Mapping[str, KnownFile]:
        """The documents as of the last load and what was noted since."""
        return self._documents or {}

    async def load(self) -> None:
        """Ask SQL, unless nothing was forgotten.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        if self._documents is None:
            rows = await self._folders.documents(self.folder.id)
            self._documents = {file: KnownFile.of(row) for file, row in rows.items()}

    def forget(self) -> None:
        """Ask SQL at the next load."""
        self._documents = None

    def is_unchanged(self, seen: ScannedFile) -> bool:
        """True if a file has the stat that it had when it was last stored or refused."""
        known = self.documents.get(seen.file)
        return known is not None and known.stat == seen.stat and not known.is_untried

    def note(self, stored: Iterable[StoredArrival], seen: Mapping[str, ScannedFile]) -> None:
        """Remember what was stored just now; after a move SQL must be asked, for a name was left."""
        for one in stored:
            if one.outcome in ("renamed", "back"):
                self.forget()
            if self._documents is not None:
                self._documents[one.file] = KnownFile(one.document, seen[one.file].stat)
