"""Writes a backup of a home while it is in use.

SQL is read first, in one snapshot, and lists contents and readings; neither ever changes, so files copied
later match it. Files purged in the meantime are left out and reported.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.backup.destination import BackupDestination
from storage.backup.manifest import BackupEntry, BackupManifest
from storage.backup.table_dump import dump_tables
from storage.clock import utc_now
from storage.erasure.data_inventory import HOME_ENTRIES
from storage.errors import DamagedBackup, LostReading, SettingsError
from storage.files.object_store import hash_file
from storage.files.reading_archive import STORED_MARK
from storage.sql.migrations.revisions import newest_revision
from storage.sql.tables import BlobRow, FactRow, ReadingRow
from storage.stores import Stores
from storage.threads import run_in_thread

# Folder in a home to which a restore moves the previous content.
REPLACED = "replaced"
# Entries of a home that a backup leaves out: tables are dumped, the rest can be regenerated.
REGENERATED = (
    "footnote.db*",
    "index",
    "weaviate",
    "images",
    "serve.json",
    "console_secret",
    "*.toml.restored",
    REPLACED,
)
CONTENT_FOLDERS = ("blobs", "readings")
# Fact that identifies a home's own backups; a restore keeps it.
HOME_FACT = "home"
SHOWN_EVERY_SECONDS = 0.5

# Progress callback: (what, done, total).
ProgressCallback = Callable[[str, int, int], None]


@dataclass(slots=True)
class BackupReport:
    """Summary of a backup."""

    tables: int
    files: int
    # Size of all contents.
    bytes: int
    # Contents that were not in the backup yet.
    copied: int
    # Contents of the previous backup that were removed.
    dropped: int
    # SHA-256 of the manifest, which `footnote restore` asks for.
    digest: str
    # Files that were corrupt or missing -> why.
    left_out: dict[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Content:
    """PDF, by its sha256, or files of a reading, by its id."""

    # Path in a home.
    name: str
    id: str | UUID
    size: int = 0


def kept_entries() -> list[str]:
    """Return the patterns of a home's entries that are copied as files, other than contents and readings."""
    return [name for name in HOME_ENTRIES if name not in (*REGENERATED, *CONTENT_FOLDERS)]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield regular files; links are skipped, because their targets are outside the home."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name != STORED_MARK:
            yield path


class HomeBackup:
    """Writes an incremental backup of one home to one place."""

    def __init__(self, stores: Stores, place: BackupDestination, show: ProgressCallback) -> None:
        self._stores = stores
        self._home = stores.settings.home_path
        self._place = place
        self._show = show

    async def write(self, *, replace: bool = False) -> BackupReport:
        """Write the backup; the previous one stays complete until this one is.

        Raises:
            SettingsError: the place lies in the home, or holds another home's backup.
            BackupError: the place is full, unreachable or refuses access.
            DatabaseUnavailable: the database does not work.
        """
        started = time.monotonic()
        folder = self._place.local_folder
        if folder is not None and folder.absolute().is_relative_to(self._home):
            raise SettingsError("the backup must not be inside its own home: choose another folder")
        home_id = await self._home_id()
        earlier = await asyncio.to_thread(self._earlier)
        if earlier and earlier.home_id != home_id and not replace:
            raise SettingsError(
                f"the destination holds a backup of another home ({earlier.home}, {earlier.made_at}): choose "
                "another one, or overwrite it with --replace"
            )
        before = earlier.files if earlier else {}
        with tempfile.TemporaryDirectory(prefix="footnote-backup-") as temporary:
            drafts = Path(temporary)
            made_at = utc_now().isoformat()
            manifest = BackupManifest(newest_revision(), made_at, str(self._home), home_id)
            async with self._stores.database.snapshot() as session:
                tables, manifest.last_ids = await dump_tables(session, drafts)
                names = await self._contents(session)
            copied = await asyncio.to_thread(self._copy_tables, manifest, tables)
            copied += await self._copy(manifest, before, names)
            await asyncio.to_thread(self._place.write_manifest, manifest.to_json(), drafts / "manifest")
        dropped = await asyncio.to_thread(self._place.drop, manifest.contents.__contains__)
        return BackupReport(
            tables=len(manifest.tables),
            files=len(manifest.files),
            bytes=sum(self._place.held.values()),
            copied=copied,
            dropped=dropped,
            digest=manifest.digest,
            left_out=manifest.left_out,
            seconds=round(time.monotonic() - started, 1),
        )

    async def _home_id(self) -> str:
        async with self._stores.database.transaction() as session:
            fact = await session.get(FactRow, HOME_FACT)
            if fact is None:
                fact = FactRow(name=HOME_FACT, value=uuid4().hex)
                session.add(fact)
            return fact.value

    def _earlier(self) -> BackupManifest | None:
        data = self._place.read_manifest()
        try:
            return BackupManifest.of_json(data) if data else None
        except DamagedBackup:
            return None  # it is overwritten

    async def _contents(self, session: AsyncSession) -> list[_Content]:
        """Return every content and every finished reading."""
        blobs = await session.execute(select(col(BlobRow.sha256), col(BlobRow.size)))
        contents = [_Content(f"blobs/{sha256[:2]}/{sha256}", sha256, size) for sha256, size in blobs]
        done = await session.scalars(select(col(ReadingRow.id)).where(col(ReadingRow.state) == "done"))
        return contents + [_Content(f"readings/{one.hex[:2]}/{one}", one) for one in done]

    def _copy_tables(self, manifest: BackupManifest, tables: dict[str, Path]) -> int:
        copied = 0
        for name, file in tables.items():
            entry = BackupEntry(hash_file(file), file.stat().st_size)
            copied += self._place.keep(file, entry.sha256, entry.size)
            manifest.tables[name] = entry
        return copied

    async def _copy(
        self, manifest: BackupManifest, before: dict[str, BackupEntry], contents: list[_Content]
    ) -> int:
        copied, shown_at, total = 0, 0.0, len(contents)
        readings: dict[str, dict[str, BackupEntry]] = {}
        for name, entry in before.items():
            readings.setdefault(name.rpartition("/")[0], {})[name] = entry
        for number, content in enumerate(contents, 1):
            if known := self._unchanged(content, readings.get(content.name, {})):
                manifest.files |= known
            elif await self._bring(content, manifest):
                copied += await asyncio.to_thread(self._copy_files, content.name, manifest, before)
            if number == total or time.monotonic() - shown_at >= SHOWN_EVERY_SECONDS:
                self._show("contents", number, total)
                shown_at = time.monotonic()
        for name in await asyncio.to_thread(self._others):
            copied += await asyncio.to_thread(self._copy_files, name, manifest, before)
        return copied

    def _unchanged(self, content: _Content, before: dict[str, BackupEntry]) -> dict[str, BackupEntry]:
        """Return a content's entries if the place has it, so that it need not be downloaded."""
        if self._stores.store is None:
            return {}
        if isinstance(content.id, str):
            entry = BackupEntry(content.id, content.size)
            return {content.name: entry} if self._place.held.get(entry.sha256) == entry.size else {}
        are_held = all(self._place.held.get(one.sha256) == one.size for one in before.values())
        return before if are_held else {}

    async def _bring(self, content: _Content, manifest: BackupManifest) -> bool:
        """Download a content into the home; return False if it is lost, and note that in the manifest."""
        is_there = (self._home / content.name).exists
        if self._stores.store is None:
            is_kept = is_there()
        elif isinstance(content.id, str):
            sha256 = content.id
            if is_kept := await run_in_thread(lambda: self._stores.blobs.exists(sha256)):
                await self._stores.blobs.fetch(sha256)
        else:
            with suppress(LostReading):
                await self._stores.files.fetch(content.id)
            is_kept = is_there()
        if not is_kept:
            manifest.left_out[content.name] = "missing"
        return is_kept

    def _others(self) -> list[str]:
        """Return the home's other entries that cannot be regenerated."""
        patterns = kept_entries()
        names = sorted(
            entry.name for entry in self._home.iterdir() if not entry.is_symlink() or entry.is_file()
        )
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]

    def _copy_files(self, name: str, manifest: BackupManifest, before: dict[str, BackupEntry]) -> int:
        path = self._home / name
        files = _files_below(path) if path.is_dir() else [path]
        return sum(self._copy_file(file, manifest, before) for file in files)

    def _copy_file(self, file: Path, manifest: BackupManifest, before: dict[str, BackupEntry]) -> bool:
        """Copy one file; a stored PDF that does not match its hash is left out."""
        name = file.relative_to(self._home).as_posix()
        try:
            stat = file.stat()
            known = before.get(name)
            if known and (known.size, known.modified) == (stat.st_size, stat.st_mtime_ns):
                sha256 = known.sha256
            else:
                sha256 = hash_file(file)
            if name.startswith("blobs/") and sha256 != file.name:
                manifest.left_out[name] = "corrupt"
                return False
            was_copied = self._place.keep(file, sha256, stat.st_size)
        except FileNotFoundError:
            manifest.left_out[name] = "deleted during the backup"
            return False
        except OSError as error:
            manifest.left_out[name] = f"it cannot be read: {error.strerror}"
            return False
        manifest.files[name] = BackupEntry(sha256, stat.st_size, stat.st_mtime_ns)
        return was_copied
