"""Safe opening and copying in folders that others write to: follows no links, never blocks.

Unreadable files are retried after a while, since no stat shows that permissions or disks were repaired.
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

# Retry interval for unreadable files.
RETRY_SECONDS = 600.0

BLOCK_BYTES = MEGABYTE = 1 << 20
# Errors that a disk reports for a single damaged file.
DAMAGES = (errno.EIO, errno.EREMOTEIO, errno.EUCLEAN, errno.EBADMSG, errno.ENODATA)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UnreadableFiles:
    """Unreadable files of one location, which count as changed once per retry interval."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Measure time with ``clock``, in monotonic seconds."""
        self._clock = clock
        self._since: dict[tuple[str, ...], float] = {}

    def add(self, parts: tuple[str, ...]) -> None:
        """Record a failed read; repeated failures keep the first time."""
        self._since.setdefault(parts, self._clock())

    def remove(self, parts: tuple[str, ...]) -> None:
        """Record a successful read."""
        self._since.pop(parts, None)

    def stat_to_remember(self, parts: tuple[str, ...], file_stat: FileStat) -> FileStat:
        """Return the stat to remember; for an unreadable file its tag changes with every retry interval."""
        if (since := self._since.get(parts)) is None:
            return file_stat
        return file_stat._replace(
            tag=f"{file_stat.tag} try {int((self._clock() - since) / RETRY_SECONDS) + 2}"
        )


def open_beneath(root: Path, parts: tuple[str, ...]) -> int:
    """Return a descriptor of the regular file at ``parts`` below ``root``; follows no symlinks.

    Raises:
        NotAFile: it is gone, or a link, pipe, device or folder.
        OSError: the file is not readable, or its disk does not respond.
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
    """Open one folder at a time, so that a link swapped in concurrently cannot lead elsewhere (TOCTOU)."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def check_size(seen: ScannedFile, max_bytes: int) -> None:
    """Refuse a file over the size limit.

    Raises:
        FileRefused: it is too large.
    """
    if seen.stat.size > max_bytes:
        size, limit = (f"{count / MEGABYTE:,.0f} MB" for count in (seen.stat.size, max_bytes))
        raise FileRefused(
            f"This file is {size}, the limit is {limit}: split it, or ask an admin to raise the limit."
        )


def copy(root: Path, seen: ScannedFile, target: Path, max_bytes: int, heartbeat: Heartbeat) -> str:
    """Copy a file through one descriptor while hashing it; return the sha256 in hex.

    Blocks: call it in a thread; ``heartbeat`` is called for every block.

    Raises:
        NotAFile: there is no regular file of this name any more.
        FileChanged: it changed before or during the copy; the target is worthless.
        FileRefused: it is too large.
        FileUnreadable: permissions are missing, or the disk is damaged there.
        BlobsUnavailable: the copy could not be written, or the source's disk does not respond.
    """
    check_size(seen, max_bytes)
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
    """Copy between two stats of the descriptor, which must both equal ``file_stat``."""
    if FileStat.of(os.fstat(descriptor)) != file_stat:
        raise FileChanged
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as copied:
        while size <= file_stat.size and (block := _read(descriptor)):  # the file may grow endlessly
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
    """Map an error to a problem of the file, or of the whole location."""
    if isinstance(error, PermissionError):
        return FileUnreadable("This file may not be read: give the service permission to read it.")
    if error.errno in DAMAGES:
        return FileUnreadable(
            f"This file could not be read ({error.strerror}): check its disk, or replace the file. "
            "It is tried again every ten minutes."
        )
    return BlobsUnavailable(f"the folder's disk does not answer: {error.strerror}")
