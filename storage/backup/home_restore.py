"""Restores a backup into an empty home, with any choice of engines.

The tables come last, in one transaction. The index is not in a backup: reconciliation finds that it lacks
what SQL calls live, and publishes it from the readings and their vectors.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from secrets import token_bytes
from uuid import UUID

from sqlalchemy import func, select
from sqlmodel import SQLModel

from storage.backup.destination import BackupDestination
from storage.backup.home_backup import (
    CONTENT_FOLDERS,
    REPLACED,
    SHOWN_EVERY_SECONDS,
    ProgressCallback,
    kept_entries,
)
from storage.backup.manifest import BackupEntry, BackupManifest
from storage.backup.table_dump import Row, load_table, set_last_ids
from storage.clock import utc_now
from storage.erasure.data_inventory import HOME_ENTRIES
from storage.errors import BackupError, DamagedBackup, NewerDatabase, SettingsError
from storage.files.blobs import Blobs
from storage.files.object_store import ObjectStore
from storage.files.reading_archive import ReadingArchive
from storage.files.store_owner import (
    BLOBS_FACT,
    KEY_FACT,
    OWNER_FILE,
    claim_store,
    ensure_store_key,
    has_files,
    home_name,
    store_owner,
)
from storage.queues.inventory import RECONCILE_FACT
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.migrations.revisions import is_known
from storage.stores import INDEX_FACTS, open_blob_store
from storage.threads import run_in_thread

# Configuration files: restored ones take effect only after an admin renames them.
SETTINGS = ("footnote.toml", "folders.toml", "glossary.toml", "web_sources.toml")
RESTORED = ".restored"
# Single files of a home that a backup contains.
FILES = {name for name in kept_entries() if name not in (*CONTENT_FOLDERS, "inbox")}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"blobs/[0-9a-f]{2}/(?P<sha256>[0-9a-f]{64})")
_READING = re.compile(
    r"readings/[0-9a-f]{2}/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?!\.)[\w.-]+", re.ASCII
)


@dataclass(slots=True)
class RestoreReport:
    """Summary of a restore."""

    # When the backup was made.
    made_at: str
    rows: int
    files: int
    # Files that the backup left out -> why.
    left_out: dict[str, str]
    # Configuration files restored under another name, for an admin to review and rename.
    settings: list[str]
    # Folder with the previous content of the home; None if it was empty.
    replaced: str | None
    seconds: float


def read_backup(place: BackupDestination) -> BackupManifest:
    """Return the manifest of a backup that can be restored.

    Raises:
        DamagedBackup: it is unfinished or corrupt, or names something that no backup of a home contains.
        NewerDatabase: a newer release made it.
        BackupError: the place does not answer.
    """
    data = place.read_manifest()
    if data is None:
        raise DamagedBackup(
            "there is no finished backup: manifest.json, which is written last, is missing there"
        )
    manifest = BackupManifest.of_json(data)
    if not is_known(manifest.revision):
        raise NewerDatabase("a newer release of Footnote made this backup: install that release")
    if strange := next(_strange_names(manifest), None):
        raise DamagedBackup(f"not a Footnote backup: unexpected entry {strange!r}")
    entries = {f"the table {name}": entry for name, entry in manifest.tables.items()} | manifest.files
    for name, entry in entries.items():
        if place.held.get(entry.sha256) != entry.size:
            raise DamagedBackup(f"the backup has lost {name}, or a part of it")
    return manifest


def _strange_names(manifest: BackupManifest) -> Iterator[str]:
    """Yield names that no backup of ours contains: one could be a path out of the home."""
    tables = SQLModel.metadata.tables
    yield from (name for name in (*manifest.tables, *manifest.last_ids) if name not in tables)
    yield from (name for name, entry in manifest.files.items() if not _is_of_home(name, entry))
    yield from (sha256 for sha256 in manifest.contents if not _SHA256.fullmatch(sha256))


def _is_of_home(name: str, entry: BackupEntry) -> bool:
    """True for a file that ``HomeBackup`` copies."""
    if blob := _BLOB.fullmatch(name):
        return blob["sha256"] == entry.sha256
    first, *more = name.split("/")
    if first == "inbox":
        return bool(more) and not {"", ".", ".."} & {*more} and not {"\0", "\\"} & {*name}
    return bool(_READING.fullmatch(name)) or (not more and first in FILES)


class HomeRestore:
    """Restores one backup into one home that is not in use."""

    def __init__(self, settings: StorageSettings, place: BackupDestination, show: ProgressCallback) -> None:
        self._settings = settings
        self._home = settings.home_path
        self._place = place
        self._show = show
        url = settings.database_url
        self._url = url.get_secret_value() if url else f"sqlite:///{self._home / 'footnote.db'}"
        self._key = token_bytes()
        self._store = open_blob_store(settings, self._key)

    async def require_empty(self) -> None:
        """Make sure that nothing would be overwritten.

        Raises:
            SettingsError: home, database or blob store hold something.
        """
        again = "choose an empty one, or use --force to move its files aside"
        if self._home.exists():
            entries = [path for path in self._home.iterdir() if path.is_file() or any(path.iterdir())]
            if entries:
                raise SettingsError(f"the home {self._home} is not empty: {again}")
        if self._settings.database_url is not None and await self._has_rows():
            raise SettingsError(
                "the database at DATABASE_URL is not empty: choose an empty one, or say --force to lose it"
            )
        if self._store and await has_files(self._store):
            raise SettingsError(
                "the store at FOOTNOTE_BLOBS is not empty: choose an empty prefix, or say --force where "
                "it is this home's"
            )

    async def _has_rows(self) -> bool:
        database = await Database.open(self._url)
        try:
            async with database.snapshot() as session:
                for table in SQLModel.metadata.sorted_tables:
                    if await session.scalar(select(func.count()).select_from(table)):
                        return True
            return False
        finally:
            await database.aclose()

    async def restore(self, manifest: BackupManifest) -> RestoreReport:
        """Replace the content of the home by that of the backup.

        Raises:
            BackupError: the place does not answer, or the home's disk is full.
            BlobsUnavailable: the store at FOOTNOTE_BLOBS does not answer.
            DamagedBackup: a file of it is corrupt; the message names it.
            DatabaseUnavailable: the database does not work.
            SettingsError: that store is another home's; nothing was changed.
        """
        started = time.monotonic()
        if self._store:
            await self._release(self._store)
        try:
            replaced = await asyncio.to_thread(self._put_aside)
            await self._fetch_files(manifest)
            rows = await self._fill_tables(manifest)
        except OSError as error:
            raise BackupError(f"the home cannot be written: {error.strerror}") from error
        return RestoreReport(
            made_at=manifest.made_at,
            rows=rows,
            files=len(manifest.files),
            left_out=manifest.left_out,
            settings=[name + RESTORED for name in SETTINGS if name in manifest.files],
            replaced=replaced,
            seconds=round(time.monotonic() - started, 1),
        )

    async def _release(self, store: ObjectStore) -> None:
        """Release our store until the tables are restored, so that a restore can be repeated."""
        owner = await store_owner(store)
        if owner is None:
            return
        if owner != await self._own_name():
            raise SettingsError(
                "the store at FOOTNOTE_BLOBS is another home's, also by --force: choose an empty prefix, or, "
                f"where that home is no more, remove its {OWNER_FILE}"
            )
        await run_in_thread(lambda: store.remove([OWNER_FILE]))

    async def _own_name(self) -> str | None:
        if self._settings.database_url is None and not (self._home / "footnote.db").exists():
            return None
        database = await Database.open(self._url)
        async with aclosing(database):
            return await home_name(database)

    def _put_aside(self) -> str | None:
        """Move a home's entries into a subfolder; Weaviate's data stays, and reconciliation cleans it up."""
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        patterns = HOME_ENTRIES.keys() - {"weaviate", REPLACED}
        entries = [entry for pattern in patterns for entry in self._home.glob(pattern)]
        if not entries:
            return None
        aside = self._home / REPLACED / f"{utc_now():%Y%m%dT%H%M%S%f}"
        aside.mkdir(parents=True, mode=0o700)
        for entry in entries:
            entry.rename(aside / entry.name)
        return str(aside)

    async def _fetch_files(self, manifest: BackupManifest) -> None:
        """Write contents to FOOTNOTE_BLOBS one by one, because the home's disk need not hold all of them."""
        cache_bytes = self._settings.blob_cache_mb * 1024 * 1024
        blobs = Blobs(self._home / "blobs", store=self._store, cache_bytes=cache_bytes)
        readings = self._home / "readings"
        archive = ReadingArchive(self._store, readings, cache_bytes) if self._store else None
        shown_at, done, total = 0.0, 0, len(manifest.files)
        for folder, entries in groupby(manifest.files.items(), lambda named: named[0].rpartition("/")[0]):
            for name, entry in entries:
                await asyncio.to_thread(self._fetch_file, name, entry, blobs)
                done += 1
                if done == total or time.monotonic() - shown_at >= SHOWN_EVERY_SECONDS:
                    self._show("files", done, total)
                    shown_at = time.monotonic()
            if archive and folder.startswith("readings/"):
                await archive.upload(UUID(folder.rpartition("/")[2]))

    def _fetch_file(self, name: str, entry: BackupEntry, blobs: Blobs) -> None:
        if blob := _BLOB.fullmatch(name):
            temporary = blobs.new_temporary()
            self._place.fetch(entry.sha256, name, temporary)
            blobs.adopt(temporary, blob["sha256"])
            return
        target = self._home / (name + RESTORED if name in SETTINGS else name)
        self._place.fetch(entry.sha256, name, target)
        target.chmod(0o600)

    async def _fill_tables(self, manifest: BackupManifest) -> int:
        """Fill the tables of the release that made the backup, then migrate them."""
        database = await Database.open(self._url)
        try:
            await database.drop_tables()
        finally:
            await database.aclose()
        database, rows = await Database.open(self._url, revision=manifest.revision), 0
        try:
            with tempfile.TemporaryDirectory(prefix="footnote-restore-") as temporary:
                files = {name: Path(temporary, name) for name in manifest.tables}
                for name, entry in manifest.tables.items():
                    dump = f"the table {name}"
                    await asyncio.to_thread(self._place.fetch, entry.sha256, dump, files[name])
                async with database.transaction() as session:
                    connection = await session.connection()
                    for name, file in files.items():
                        rows += await load_table(connection, name, file, self._change(manifest.home))
                    await set_last_ids(connection, manifest.last_ids)
        finally:
            await database.aclose()
        database = await Database.open(self._url)
        async with aclosing(database):
            if self._store:
                await ensure_store_key(database, self._key)
                await claim_store(database, self._store)
        return rows

    def _change(self, old_home: str) -> Callable[[str, Row], Row | None]:
        """Return a row filter for the new home: without facts about the old index, and with moved folders."""

        def change(table: str, row: Row) -> Row | None:
            if table == "fact" and row["name"] in INDEX_FACTS | {RECONCILE_FACT, BLOBS_FACT, KEY_FACT}:
                return None
            if table == "folder" and f"{row['location']}/".startswith(f"{old_home}/"):
                row["location"] = str(self._home) + row["location"][len(old_home) :]
            return row

        return change
