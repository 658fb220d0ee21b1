"""Writes a backup of a home while it is in use.

SQL is read first, in one snapshot, and says which contents and readings there are; neither ever changes,
so what is copied after it fits it. What a purge took meanwhile is left out, and said.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.backup.manifest import BackupEntry, BackupManifest
from storage.backup.place import BackupPlace, hash_file
from storage.backup.table_dump import dump_tables
from storage.clock import utc_now
from storage.erasure.kept_texts import HOME_ENTRIES
from storage.errors import DamagedBackup, SettingsError
from storage.sql.migrations.revisions import newest_revision
from storage.sql.tables import BlobRow, ReadingRow
from storage.stores import Stores

MADE_ANEW = ("footnote.db*", "index", "weaviate", "images", "serve.json")
"""Entries of a home that a backup leaves out: the tables are dumped, all else is made of what it holds."""
CONTENT_FOLDERS = ("blobs", "readings")
SHOWN_EVERY_SECONDS = 0.5

Shown = Callable[[str, int, int], None]
"""What is done, how many of them, and of how many."""


@dataclass(slots=True)
class BackupReport:
    """What a backup holds."""

    tables: int
    files: int
    bytes: int
    """Of all contents."""
    copied: int
    """Contents that were not there yet."""
    dropped: int
    """Contents of the backup before it that nothing needs any more."""
    left_out: dict[str, str]
    """Files that were damaged or gone -> why."""
    seconds: float


def kept_entries() -> list[str]:
    """Patterns of a home's entries that a backup copies as files, its contents and readings excepted."""
    return [name for name in HOME_ENTRIES if name not in (*MADE_ANEW, *CONTENT_FOLDERS)]


def _files_below(folder: Path) -> Iterator[Path]:
    """Regular files; a link leads to what is not the home's."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


class HomeBackup:
    """Writes one home to one place, and repeats it: what is there already is not copied again."""

    def __init__(self, stores: Stores, place: BackupPlace, show: Shown) -> None:
        self._stores = stores
        self._home = stores.settings.home_path
        self._place = place
        self._show = show

    async def write(self) -> BackupReport:
        """Write the backup; the one before it stays whole until this one is.

        Raises:
            SettingsError: the place lies in the home.
            BackupError: the place is full, away or refuses us.
            DatabaseUnavailable: the database does not work.
        """
        started = time.monotonic()
        folder = self._place.local_folder
        if folder is not None and folder.absolute().is_relative_to(self._home):
            raise SettingsError("the backup would lie in the home that it is of: choose a folder elsewhere")
        before = await asyncio.to_thread(self._earlier)
        with tempfile.TemporaryDirectory(prefix="footnote-backup-") as temporary:
            drafts = Path(temporary)
            manifest = BackupManifest(newest_revision(), utc_now().isoformat(), str(self._home))
            async with self._stores.database.snapshot() as session:
                tables, manifest.last_ids = await dump_tables(session, drafts)
                names = await self._contents(session)
            copied = await asyncio.to_thread(self._copy, manifest, before, tables, names, drafts)
            await asyncio.to_thread(self._place.write_manifest, manifest.to_json(), drafts / "manifest")
        dropped = await asyncio.to_thread(self._place.drop, manifest.contents.__contains__)
        return BackupReport(
            tables=len(manifest.tables),
            files=len(manifest.files),
            bytes=sum(self._place.held.values()),
            copied=copied,
            dropped=dropped,
            left_out=manifest.left_out,
            seconds=round(time.monotonic() - started, 1),
        )

    def _earlier(self) -> dict[str, BackupEntry]:
        data = self._place.read_manifest()
        try:
            return BackupManifest.of_json(data).files if data else {}
        except DamagedBackup:
            return {}  # a good one takes its place

    async def _contents(self, session: AsyncSession) -> list[str]:
        """The files of every content and every finished reading, by path in the home."""
        blobs = await session.scalars(select(col(BlobRow.sha256)))
        names = [f"blobs/{sha256[:2]}/{sha256}" for sha256 in blobs]
        done = await session.scalars(select(col(ReadingRow.id)).where(col(ReadingRow.state) == "done"))
        return names + [f"readings/{one.hex[:2]}/{one}" for one in done]

    def _copy(
        self,
        manifest: BackupManifest,
        before: dict[str, BackupEntry],
        tables: dict[str, Path],
        names: list[str],
        drafts: Path,
    ) -> int:
        copied = 0
        for name, file in tables.items():
            entry = BackupEntry(hash_file(file), file.stat().st_size)
            copied += self._place.keep(file, entry.sha256, entry.size)
            manifest.tables[name] = entry
        files = list(self._files(names, manifest))
        shown_at = 0.0
        for number, file in enumerate(files, 1):
            copied += self._copy_file(file, manifest, before)
            if number == len(files) or time.monotonic() - shown_at >= SHOWN_EVERY_SECONDS:
                self._show("files", number, len(files))
                shown_at = time.monotonic()
        return copied

    def _files(self, names: list[str], manifest: BackupManifest) -> Iterator[Path]:
        for name in names:
            path = self._home / name
            if path.is_dir():
                yield from _files_below(path)
            elif path.exists():
                yield path
            else:
                manifest.left_out[name] = "it is not there"
        patterns = kept_entries()
        for entry in sorted(self._home.iterdir()):
            if not any(fnmatchcase(entry.name, pattern) for pattern in patterns):
                continue
            if entry.is_dir() and not entry.is_symlink():
                yield from _files_below(entry)
            elif entry.is_file():
                yield entry

    def _copy_file(self, file: Path, manifest: BackupManifest, before: dict[str, BackupEntry]) -> bool:
        """Keep one file; a stored PDF whose bytes are not its name's is left out."""
        name = file.relative_to(self._home).as_posix()
        try:
            stat = file.stat()
            known = before.get(name)
            if known and (known.size, known.modified) == (stat.st_size, stat.st_mtime_ns):
                sha256 = known.sha256
            else:
                sha256 = hash_file(file)
            if name.startswith("blobs/") and sha256 != file.name:
                manifest.left_out[name] = "its bytes are damaged"
                return False
            was_copied = self._place.keep(file, sha256, stat.st_size)
        except FileNotFoundError:
            manifest.left_out[name] = "it went while the backup was made"
            return False
        except OSError as error:
            manifest.left_out[name] = f"it cannot be read: {error.strerror}"
            return False
        manifest.files[name] = BackupEntry(sha256, stat.st_size, stat.st_mtime_ns)
        return was_copied
