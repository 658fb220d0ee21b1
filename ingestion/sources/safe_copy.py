"""Opens and copies files of a folder that others write: no links are followed, nothing blocks.

Files that could not be read are remembered and tried again in a while: no stat shows when rights or disks are
mended.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG

from ingestion.errors import FileChanged, FileRefused, FileUnreadable, NotAFile
from ingestion.sources.base import FileStat, ScannedFile
from ingestion.sources.watchdog import Heartbeat
from storage.errors import BlobsUnavailable

# After that long a file that could not be read is tried again.
RETRY_SECONDS = 600.0

BLOCK_BYTES = MEGABYTE = 1 << 20
# What a disk says of a file that it cannot give back, while others beside it are well.
DAMAGES = (errno.EIO, errno.EREMOTEIO, errno.EUCLEAN, errno.EBADMSG, errno.ENODATA)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UnreadableFiles:
    """Makes such files count as new again after a while; for one place."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Measure the while by seconds that never jump."""
        self._clock = clock
        self._since: dict[tuple[str, ...], float] = {}

    def add(self, parts: tuple[str, ...]) -> None:
        """A file could not be read, once more or for the first time."""
        self._since.setdefault(parts, self._clock())

    def remove(self, parts: tuple[str, ...]) -> None:
        """A file could be read."""
        self._since.pop(parts, None)

    def shown(self, parts: tuple[str, ...], file_stat: FileStat) -> FileStat:
        """The stat to remember a file by: soon after its first failure and then now and then another one."""
        if (since := self._since.get(parts)) is None:
            return file_stat
        return file_stat._replace(
            tag=f"{file_stat.tag} try {int((self._clock() - since) / RETRY_SECONDS) + 2}"
        )


def open_beneath(root: Path, parts: tuple[str, ...]) -> int:
    """Return a descriptor of the regular file at ``parts`` below ``root``, through no symlink at all.

    Raises:
        NotAFile: gone, or a link, pipe, device or folder.
        OSError: the file may not be read, or its disk does not answer.
    """
    try:
        descriptor = _open(root, parts)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
            raise NotAFile from error
        raise
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile
    return descriptor


def _open(root: Path, parts: tuple[str, ...]) -> int:
    """Walk down one folder at a time, so that a swapped-in link cannot lead elsewhere."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def refuse_large(seen: ScannedFile, max_bytes: int) -> None:
    """Refuse a file by its size alone.

    Raises:
        FileRefused: it is too large.
    """
    if seen.stat.size > max_bytes:
        size, limit = (f"{count / MEGABYTE:,.0f} MB" for count in (seen.stat.size, max_bytes))
        raise FileRefused(
            f"This file has {size}, the limit is {limit}: split it, or raise FOOTNOTE_MAX_FILE_MB."
        )


def copy(root: Path, seen: ScannedFile, target: Path, max_bytes: int, heartbeat: Heartbeat) -> str:
    """Copy a file through one descriptor while hashing it; returns the sha256 as hex digits.

    Blocks: call it in a thread; ``heartbeat`` is called with every block.

    Raises:
        NotAFile: there is no such regular file any more.
        FileChanged: it changed before or while it was copied; what was written is worthless.
        FileRefused: it is too large; Unreadable: it may not be read, or its disk is damaged there.
        BlobsUnavailable: the copy could not be written, or the source's disk does not answer.
    """
    refuse_large(seen, max_bytes)
    try:
        descriptor = open_beneath(root, seen.parts)
    except OSError as error:
        raise _as_ingestion_error(error) from error
    try:
        return _copy_unchanged(descriptor, seen.stat, target, heartbeat)
    except OSError as error:
        raise BlobsUnavailable(f"a file could not be copied: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _copy_unchanged(descriptor: int, file_stat: FileStat, target: Path, heartbeat: Heartbeat) -> str:
    """Copy between two stats of the same descriptor that must both equal ``file_stat``."""
    if FileStat.of(os.fstat(descriptor)) != file_stat:
        raise FileChanged
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as copied:
        while size <= file_stat.size and (block := _read(descriptor)):  # it may grow without end
            heartbeat()
            size += len(block)
            digest.update(block)
            copied.write(block)
    if FileStat.of(os.fstat(descriptor)) != file_stat:
        raise FileChanged
    return digest.hexdigest()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, BLOCK_BYTES)
    except OSError as error:
        raise _as_ingestion_error(error) from error


def _as_ingestion_error(error: OSError) -> Exception:
    """True if the file or the whole place cannot be read."""
    if isinstance(error, PermissionError):
        return FileUnreadable("This file may not be read: give the service permission to read it.")
    if error.errno in DAMAGES:
        return FileUnreadable(
            f"This file could not be read ({error.strerror}): check its disk, or put the file there anew. "
            "It is tried again every ten minutes."
        )
    return BlobsUnavailable(f"the folder's disk does not answer: {error.strerror}")
