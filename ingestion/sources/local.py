"""A folder of this machine's own file system, also one that a network share is mounted on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ingestion.errors import FileUnreadable, NotAFile
from ingestion.sources.listing import scan, scan_file
from ingestion.sources.opening import copy, open_beneath
from ingestion.sources.patience import MOUNT_SECONDS, Heartbeat, ShareTimeout, Watchdog
from ingestion.sources.port import Scan, ScannedFile
from ingestion.sources.unreadable import UnreadableFiles
from storage.errors import BlobsUnavailable
from storage.mounts import may_hang

T = TypeVar("T")
_LINK = (
    "The folder is a link now: put the folder itself there, or name the place it leads to in folders.toml."
)


class LocalSource:
    """Implements ``Source`` through the kernel's own calls; those on a share may hang and are given up."""

    def __init__(self, location: str, seconds: float = 20.0, *, follows_link: bool = True) -> None:
        """A source of the folder at this absolute path, which need not exist.

        Args:
            location: the path.
            seconds: how long a network share may be silent; a disk of this machine is trusted to answer.
            follows_link: the folder itself may be a link; nobody follows those in it.
        """
        self.location = location
        self._root = Path(location)
        self._follows_link = follows_link
        self._kernel = Watchdog(MOUNT_SECONDS)
        self.is_remote = self._is_share()
        self._watchdog = Watchdog(seconds)
        self._unreadable = UnreadableFiles()
        self._devices: dict[tuple[str, ...], int] = {}

    def scan(self) -> Scan:
        """See every PDF in it; a share may have been mounted there since the last time."""
        self.is_remote = self._is_share()
        try:
            return self._remembered(self._call(self._scan))
        except ShareTimeout as error:
            return Scan(problem=str(error))

    def scan_file(self, name: str) -> Scan:
        """See one file that lies directly in it."""
        try:
            return self._remembered(self._call(lambda _heartbeat: scan_file(self._root, name)))
        except ShareTimeout as error:
            return Scan(problem=str(error))

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """The last bytes of a file."""
        try:
            return self._call(lambda _heartbeat: _tail(*self._way_to(seen), size))
        except (NotAFile, ShareTimeout, OSError):
            return b""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it."""
        bare = replace(seen, stat=seen.stat._replace(tag=""))
        try:
            sha256 = self._call(partial(copy, *self._way_to(bare), target, max_bytes))
        except FileUnreadable:
            self._unreadable.add(seen.parts)
            raise
        except ShareTimeout as error:
            raise BlobsUnavailable(str(error)) from error
        self._unreadable.remove(seen.parts)
        return sha256

    def close(self) -> None:
        """Nothing is kept open."""

    def _is_share(self) -> bool:
        """Whether it lies on a share; one that does not even say so lies on a share that hangs."""
        try:
            return self._kernel.call(lambda _heartbeat: may_hang(self._root))
        except ShareTimeout:
            return True

    def _scan(self, heartbeat: Heartbeat) -> Scan:
        if not self._follows_link and self._root.is_symlink():
            return Scan(problem=_LINK)
        return scan(self._root, self._devices, heartbeat)

    def _remembered(self, scan: Scan) -> Scan:
        """A scan in which what could not be read looks new again after a while."""
        for file, seen in scan.files.items():
            if (file_stat := self._unreadable.shown(seen.parts, seen.stat)) != seen.stat:
                scan.files[file] = replace(seen, stat=file_stat)
        return scan

    def _way_to(self, seen: ScannedFile) -> tuple[Path, ScannedFile]:
        """(a folder to start in, the file below it): from there on, no link is followed."""
        if self._follows_link:
            return self._root, seen
        return self._root.parent, replace(seen, parts=(self._root.name, *seen.parts))

    def _call(self, work: Callable[[Heartbeat], T]) -> T:
        return self._watchdog.call(work) if self.is_remote else work(_nothing)


def _nothing() -> None:
    """The beat of calls that nobody watches."""


def _tail(root: Path, seen: ScannedFile, size: int) -> bytes:
    descriptor = open_beneath(root, seen.parts)
    try:
        return os.pread(descriptor, size, max(0, seen.stat.size - size))
    finally:
        os.close(descriptor)
