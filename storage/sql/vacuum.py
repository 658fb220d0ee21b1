"""Writes an SQLite file anew, so that it holds nothing of what was deleted from it: SQL's and the index's."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

JOURNAL_POLL_SECONDS = 0.05


def vacuum(file: Path, busy_seconds: float) -> None:
    """VACUUM, then empty the write-ahead log: until a reader of the old pages ends, it keeps them.

    ``secure_delete`` alone does not do: rows that moved to another page leave a copy on the old one.

    Args:
        file: of a database in WAL mode; other processes may use it.
        busy_seconds: how long to wait for a writer, and then for the readers.

    Raises:
        sqlite3.Error: the file is locked for longer, the disk is full, or a reader does not end.
    """
    uri = f"{file.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        deadline = time.monotonic() + busy_seconds
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > deadline:
                error = sqlite3.OperationalError("a reader keeps the journal")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            time.sleep(JOURNAL_POLL_SECONDS)
