"""SQLite file of one tenant of the embedded index: schema and connections.

One file per tenant, because BM25 statistics are per tenant and a dropped tenant must find nothing. A file
appears atomically, so an existing file has its tables. A corrupt file is moved aside: SQLite detects broken
pages, a checksum detects changed chunks.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import sqlite3
import string
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from storage.errors import IndexUnavailable, UnknownTenant
from storage.models import TenantName
from storage.sql.sqlite import vacuum

_log = logging.getLogger(__name__)

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Beginning of Python's message for invalid text; the error has no code, and the message quotes the text.
_NO_TEXT = "Could not decode to UTF-8"

_PUNCTUATION = string.punctuation.replace("'", "''''").replace('"', '""')
# Schema version in ``user_version``; 0 is that of an empty file.
_SHAPE = 1
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA user_version = {_SHAPE};
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    publication TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    terms TEXT NOT NULL,
    length INTEGER NOT NULL,
    text TEXT NOT NULL,
    first_page INTEGER NOT NULL,
    last_page INTEGER NOT NULL,
    heading_path TEXT NOT NULL,
    vector BLOB,
    space TEXT,
    checksum INTEGER NOT NULL,
    UNIQUE (publication, ordinal)
);
CREATE TABLE facet (
    facet TEXT NOT NULL,
    chunk INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    PRIMARY KEY (facet, chunk)
) WITHOUT ROWID;
CREATE INDEX facet_of_chunk ON facet (chunk);
CREATE VIRTUAL TABLE words USING fts5 (
    terms, content = 'chunk', content_rowid = 'id', tokenize = "ascii tokenchars '{_PUNCTUATION}'"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
CREATE TABLE state (
    file INTEGER NOT NULL,
    removals INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    terms INTEGER NOT NULL
);
"""

# Poll interval of the file lock, in seconds.
_LOCK_POLL_SECONDS = 0.01


class CorruptFile(sqlite3.DatabaseError):
    """Raised if a tenant's file does not hold what was written to it."""


def is_corruption(error: sqlite3.Error) -> bool:
    """True if the file itself is corrupt, as opposed to temporarily locked, full or unreachable."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return isinstance(error, CorruptFile) or str(error).startswith(_NO_TEXT)
    return code & 0xFF in _BROKEN  # the low byte is the primary result code


def checksum(columns: Sequence[Any], vector: bytes | None) -> int:
    """Return the CRC-32 of all columns of a chunk."""
    text = "\x1f".join(map(str, columns))
    return zlib.crc32(vector or b"", zlib.crc32(text.encode()))


def only_row(connection: sqlite3.Connection, query: str, *values: Any) -> tuple[Any, ...]:
    """Return a row that every intact file has.

    Raises:
        CorruptFile: it is missing.
    """
    row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
    if row is None:
        raise CorruptFile("a row is missing")
    return row


def check_integrity(connection: sqlite3.Connection) -> None:
    """Run SQLite's integrity check.

    Raises:
        CorruptFile: a page or an index is corrupt.
    """
    (found,) = only_row(connection, "PRAGMA integrity_check(1)")
    if found != "ok":
        raise CorruptFile("integrity_check failed")


class TenantFiles:
    """The folder of tenant files; every connection ends within ``timeout`` seconds."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout

    def exists(self, tenant: TenantName) -> bool:
        """True if the tenant has a file."""
        return self._path(tenant).exists()

    def tenants(self) -> set[TenantName]:
        """Return all tenants with a file."""
        return self._named("*.sqlite3") | self.corrupt_tenants()

    def corrupt_tenants(self) -> set[TenantName]:
        """Return all tenants with a corrupt file that was moved aside."""
        return self._named("*.damaged")

    def _named(self, pattern: str) -> set[TenantName]:
        return {TenantName(path.stem) for path in self._folder.glob(pattern)}

    def delete_quarantined(self, tenant: TenantName) -> None:
        """Delete the corrupt file, because the new one is complete."""
        self._aside(tenant).unlink(missing_ok=True)

    def create(self, tenant: TenantName) -> None:
        """Create an empty file for the tenant unless it exists; safe to call concurrently."""
        path = self._path(tenant)
        if path.exists():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._folder) as work:
            draft = Path(work) / path.name
            _write_schema(draft)
            with self._locked(tenant, fcntl.LOCK_EX), suppress(FileExistsError):
                # A stale journal of a deleted file would be replayed into the new one.
                if not path.exists():
                    self._remove_journal(tenant)
                # A hard link appears atomically and fails if another process was faster.
                os.link(draft, path)

    def drop(self, tenant: TenantName) -> None:
        """Remove the tenant's file, even while it is being read, and a corrupt one that was moved aside."""
        self._path(tenant).unlink(missing_ok=True)
        self._remove_journal(tenant)
        self.delete_quarantined(tenant)

    def _remove_journal(self, tenant: TenantName) -> None:
        """Remove WAL and shared memory of a former file of this name."""
        path = self._path(tenant)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)

    def ping(self) -> None:
        """Raise OSError unless the folder is writable."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder):
            pass

    @contextmanager
    def snapshot(self, tenant: TenantName) -> Iterator[sqlite3.Connection]:
        """Open the tenant's file for one consistent snapshot."""
        with self._connected(tenant, "BEGIN") as connection:
            yield connection

    @contextmanager
    def open_for_search(self, tenant: TenantName) -> Iterator[sqlite3.Connection]:
        """Open a snapshot for a search; refuse it while a corrupt file is being rebuilt.

        Raises:
            IndexUnavailable: the tenant's file was moved aside, and the new one may be incomplete.
        """
        with self.snapshot(tenant) as connection:
            if self._aside(tenant).exists():  # after opening, because the corrupt file is moved first
                raise IndexUnavailable("the channel's index file was corrupt and is being rebuilt")
            yield connection

    @contextmanager
    def transaction(self, tenant: TenantName) -> Iterator[sqlite3.Connection]:
        """Open a transaction, durable and committed as a whole, or not at all."""
        with self._connected(tenant, "BEGIN IMMEDIATE") as connection:
            yield connection
            connection.execute("COMMIT")

    def vacuum(self, tenant: TenantName) -> None:
        """Rewrite the tenant's file, so that no removed chunk remains on free pages."""
        with self._locked(tenant, fcntl.LOCK_SH):
            if self.exists(tenant):
                vacuum(self._path(tenant), self._timeout)

    @contextmanager
    def _connected(self, tenant: TenantName, begin: str) -> Iterator[sqlite3.Connection]:
        path = self._path(tenant)
        if not path.exists():
            raise UnknownTenant(f"the index has no tenant {tenant}")
        inode = None
        try:
            with self._locked(tenant, fcntl.LOCK_SH):
                inode = _inode(path)
                with self._opened(path) as connection:
                    connection.execute(begin)
                    yield connection
        except sqlite3.Error as error:
            if not is_corruption(error):
                raise
            self._quarantine(tenant, inode)
            raise IndexUnavailable("the tenant's file of the embedded index is damaged") from error

    @contextmanager
    def _opened(self, path: Path) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=self._timeout, isolation_level=None
        )
        try:
            deadline = time.monotonic() + self._timeout  # no thread outlives its caller's timeout
            connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if only_row(connection, "PRAGMA user_version")[0] != _SHAPE:
                raise CorruptFile("unknown schema version")
            yield connection
        finally:
            connection.close()

    def _quarantine(self, tenant: TenantName, inode: int | None) -> None:
        """Move the corrupt file aside, unless another one has replaced it."""
        with self._locked(tenant, fcntl.LOCK_EX):
            # Compare inodes: another process may have moved the file and created a new one.
            if _inode(self._path(tenant)) != inode:
                return
            self._path(tenant).replace(self._aside(tenant))
            self._remove_journal(tenant)
        _log.error("tenant=%s outcome=corrupt: index file quarantined, republishing", tenant)

    @contextmanager
    def _locked(self, tenant: TenantName, kind: int) -> Iterator[None]:
        """Hold a lock so that no file moves while it is open: SQLite finds the journal by the file's name."""
        deadline = time.monotonic() + self._timeout
        with self._path(tenant).with_suffix(".lock").open("a") as lock:
            while not _is_locked(lock, kind):
                if time.monotonic() > deadline:
                    raise TimeoutError("timed out waiting for the lock of a tenant's file")
                time.sleep(_LOCK_POLL_SECONDS)
            yield

    def _path(self, tenant: TenantName) -> Path:
        """Return the path of a tenant's file; the name is validated again because it becomes a path."""
        return self._folder / f"{TenantName(str(tenant))}.sqlite3"

    def _aside(self, tenant: TenantName) -> Path:
        return self._path(tenant).with_suffix(".damaged")


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of SQLite and the file system.

    Raises:
        IndexUnavailable: the file is locked, full, corrupt or unreachable.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise IndexUnavailable(f"the embedded index failed: {error}") from error


def _write_schema(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO state VALUES (?, 0, 0, 0, 0)", (secrets.randbits(62),))
        connection.commit()
    finally:
        connection.close()
    path.chmod(0o600)


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def _is_locked(lock: TextIO, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
        return True
    return False
