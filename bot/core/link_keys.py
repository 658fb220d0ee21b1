"""The keys that links are signed with: a small ring in one 0600 file of the home.

The newest key signs, all of the ring verify; rotating twice ends every link signed before.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

ACTIVE_KEYS = 2
_KEY_BYTES = 32


class LinkKey(NamedTuple):
    """One signing key; the id (0-255) travels in every link that it signed."""

    id: int
    secret: bytes


class KeyRing:
    """The active keys, newest first, made at first use.

    Several processes may share the file: it appears and changes in one step, and a change made by
    another process is noticed at the next use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stat: tuple[int, int, int] | None = None
        self._keys: tuple[LinkKey, ...] = ()

    def keys(self) -> tuple[LinkKey, ...]:
        """The active keys, newest first: one before the first rotation, then two.

        Raises:
            OSError: the file can be neither read nor made.
            ValueError: the file is not a key ring.
        """
        if not self._path.exists():
            self._create()
        stat = _stat_of(self._path)
        if stat != self._stat:
            self._keys, self._stat = _parse_keys(self._path.read_bytes()), stat
        return self._keys

    def rotate(self) -> None:
        """Sign with a new key from now on; links of the key before it still open, older ones end."""
        kept = self.keys()[: ACTIVE_KEYS - 1]
        newest = LinkKey((kept[0].id + 1) % 256, secrets.token_bytes(_KEY_BYTES))
        self._temporary((newest, *kept)).replace(self._path)

    def _create(self) -> None:
        """Make the first ring; when another process was faster, its ring stands."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._temporary((LinkKey(1, secrets.token_bytes(_KEY_BYTES)),))
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            return
        finally:
            temporary.unlink()

    def _temporary(self, keys: tuple[LinkKey, ...]) -> Path:
        """A complete ring under a name of its own, on disk before it is put in place."""
        path = self._path.with_name(f".{self._path.name}.{uuid4().hex}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_format_keys(keys))
            file.flush()
            os.fsync(file.fileno())
        return path


def _stat_of(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _format_keys(keys: tuple[LinkKey, ...]) -> bytes:
    rows = [{"id": key.id, "secret": base64.b64encode(key.secret).decode()} for key in keys]
    return json.dumps({"keys": rows}, indent=1).encode()


def _parse_keys(data: bytes) -> tuple[LinkKey, ...]:
    rows = json.loads(data)["keys"]
    return tuple(LinkKey(int(row["id"]), base64.b64decode(row["secret"], validate=True)) for row in rows)
