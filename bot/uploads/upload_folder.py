"""Atomic writes into upload folders, so that a folder scan only sees complete files.

Uploads from chats go to ``uploads/`` in the channel's folder of the inbox, which no other channel reads and
no sync source touches. Uploads from the console go into a watched folder itself. Symlinks are not followed
(O_NOFOLLOW, dir_fd). All methods block: call them in a thread (``run_on_disk``).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from storage.chat.notification_events import UPLOADS_FOLDER
from storage.readers.base import HEAD_BYTES

# Age at which a partial file counts as abandoned and is deleted.
ABANDONED_SECONDS = 86_400.0
# Timeout of one disk operation.
DISK_SECONDS = 30.0
_PARTIAL = ".upload-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

P = ParamSpec("P")
T = TypeVar("T")


class UploadFolder:
    """Folder that receives uploads.

    Calls raise OSError if the folder or its disk does not work.
    """

    def __init__(self, root: Path, inside: str | None = UPLOADS_FOLDER) -> None:
        """Write to the subfolder ``inside`` of ``root``; None: to ``root`` itself.

        Both are created by ``create_partial``, parents of ``root`` never.
        """
        self._root = root
        self._inside = inside

    def create_partial(self, key: str) -> PartialFile:
        """Create a partial file for an upload; delete those of earlier tries and abandoned ones.

        Raises:
            OSError: the folder is not writable, or is a symlink.
        """
        with self._opened(make=True) as folder:
            prefix = f"{_PARTIAL}{hashlib.sha256(key.encode()).hexdigest()[:32]}"
            for left in os.listdir(folder):
                if left.startswith(prefix) or (left.startswith(_PARTIAL) and _is_abandoned(left, folder)):
                    os.unlink(left, dir_fd=folder)
            name = f"{prefix}-{os.urandom(4).hex()}"  # random: a worker presumed dead may still write its own
            return PartialFile(os.open(name, _NEW_FILE, 0o644, dir_fd=folder), name)

    def names(self) -> list[str]:
        """Return the file names, including hidden ones; empty if the folder does not exist."""
        try:
            with self._opened() as folder:
                return os.listdir(folder)
        except FileNotFoundError:
            return []

    def rename_or_discard(self, file: PartialFile, name: str) -> None:
        """Give a complete file its name durably; discard it if a file of that name exists."""
        if not self.rename(file, name):
            self.discard(file)

    def rename(self, file: PartialFile, name: str, *, replaces: bool = False) -> bool:
        """Give a complete file its name durably; False if the name is taken and not ``replaces``."""
        # fsync the content before the name, and the directory after it: the name survives a power loss only
        # with its content.
        file.sync()
        with self._opened() as folder:
            if replaces:
                os.rename(file.name, name, src_dir_fd=folder, dst_dir_fd=folder)
            elif not _name(file.name, name, folder):
                return False
            os.fsync(folder)
        return True

    def discard(self, file: PartialFile) -> None:
        """Delete a partial file, ignoring errors."""
        file.close()
        with suppress(OSError), self._opened() as folder:
            os.unlink(file.name, dir_fd=folder)

    def remove(self, name: str) -> None:
        """Delete a file durably; a missing file is no error."""
        with suppress(FileNotFoundError), self._opened() as folder:
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        if make:
            self._root.mkdir(exist_ok=True)
        folder = os.open(self._root, _FOLDER)
        if self._inside is not None:
            above = folder
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(self._inside, dir_fd=above)
                folder = os.open(self._inside, _FOLDER, dir_fd=above)
            finally:
                os.close(above)
        try:
            yield folder
        finally:
            os.close(folder)


def _is_abandoned(name: str, folder: int) -> bool:
    try:
        return time.time() - os.lstat(name, dir_fd=folder).st_mtime > ABANDONED_SECONDS
    except FileNotFoundError:
        return False


def _name(partial: str, name: str, folder: int) -> bool:
    """Give a partial file its name unless that is taken; return whether it got it."""
    try:  # link, not rename: a rename would overwrite a file created in the meantime
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # no hard links on this file system, as on FAT
        if name in os.listdir(folder):
            return False
        os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    os.unlink(partial, dir_fd=folder)
    return True


async def run_on_disk(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run blocking ``work`` in a thread with a timeout: the inbox may be on a network share that hangs.

    Raises:
        OSError: as ``work``; TimeoutError if the disk does not answer.
    """
    async with asyncio.timeout(DISK_SECONDS):
        return await asyncio.to_thread(work, *arguments, **named)


class PartialFile:
    """A file being written, under a hidden name that folder scans skip."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.size = 0
        # First bytes, at most HEAD_BYTES.
        self.head = b""
        self._digest = hashlib.sha256()
        self._file = os.fdopen(descriptor, "wb")

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes written, as hex."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            OSError: the disk is full or failing.
        """
        self.head += data[: HEAD_BYTES - len(self.head)]
        self._digest.update(data)
        self._file.write(data)
        self.size += len(data)

    def sync(self) -> None:
        """Flush, fsync and close the file; later writes fail. Does nothing if closed.

        Raises:
            OSError: the content may not be on disk.
        """
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Close the file without fsync, ignoring errors."""
        with suppress(OSError):
            self._file.close()
