"""How damage in a tenant's file is told: SQLite knows broken pages, a checksum knows changed chunks."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_TEXT = "Could not decode to UTF-8"
"""How Python's message begins for bytes that are no text; it has no code, and goes on with the text."""


class DamagedFile(sqlite3.DatabaseError):
    """A tenant's file does not hold what was written to it."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken: not locked, full or out of reach, which passes."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return isinstance(error, DamagedFile) or str(error).startswith(_NO_TEXT)
    return code & 0xFF in _BROKEN  # the low byte of SQLite's codes is the family


def checksum(columns: Sequence[Any], vector: bytes | None) -> int:
    """CRC-32 of everything a chunk's row holds."""
    text = "\x1f".join(map(str, columns))
    return zlib.crc32(vector or b"", zlib.crc32(text.encode()))


def only_row(connection: sqlite3.Connection, query: str, *values: Any) -> tuple[Any, ...]:
    """The row that a sound file has.

    Raises:
        DamagedFile: it is not there.
    """
    row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
    if row is None:
        raise DamagedFile("a row is gone")
    return row


def require_sound_pages(connection: sqlite3.Connection) -> None:
    """Read the file through.

    Raises:
        DamagedFile: a page, or an order among them, is broken.
    """
    (found,) = only_row(connection, "PRAGMA integrity_check(1)")
    if found != "ok":
        raise DamagedFile("its pages do not fit together")
