"""A folder of this machine's own file system, also one that a network share is mounted on."""

from __future__ import annotations

import os
from pathlib import Path

from ingestion.errors import NotAFile, NotSettled
from ingestion.sources.listing import scan, scan_file
from ingestion.sources.opening import copy, open_beneath
from ingestion.sources.port import Scan, SeenFile
from storage.mounts import is_network_share


class LocalSource:
    """Implements ``Source`` through the kernel's own calls."""

    def __init__(self, location: str) -> None:
        """A source of the folder at this absolute path; it need not exist."""
        self.location = location
        self._root = Path(location)
        self.is_remote = is_network_share(self._root)

    def scan(self) -> Scan:
        """See every PDF in it."""
        return scan(self._root)

    def scan_file(self, name: str) -> Scan:
        """See one file that lies directly in it."""
        return scan_file(self._root, name)

    def tail(self, seen: SeenFile, size: int) -> bytes:
        """The last bytes of a file."""
        try:
            descriptor = open_beneath(self._root, seen.parts)
        except (NotAFile, NotSettled, OSError):
            return b""
        try:
            return os.pread(descriptor, size, max(0, seen.look.size - size))
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def copy(self, seen: SeenFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it."""
        return copy(self._root, seen, target, max_bytes)

    def close(self) -> None:
        """Nothing is kept open."""
