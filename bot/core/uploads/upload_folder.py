"""A folder that uploads are written to, so that a scan sees whole files only.

What chats upload lies in ``uploads/`` of the channel's own folder of the inbox: no other channel reads that,
and nothing else is kept equal with it. What the console uploads lies in a watched folder itself. No link on
the way is followed. Everything here blocks: call it in a thread (``on_disk``).
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

# Of a file's beginning, in which readers look for the mark of a PDF.
HEAD_BYTES = 1024
PDF_MARK = b"%PDF-"
# So old a file is that whoever wrote it is gone: it is removed.
LEFT_SECONDS = 86_400.0
# How long one step on the disk may take.
DISK_SECONDS = 30.0
_PARTIAL = ".upload-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

P = ParamSpec("P")
T = TypeVar("T")


class UploadFolder:
    """The uploads of one place."""

    def __init__(self, root: Path, inside: str | None = UPLOADS_FOLDER) -> None:
        """Write to the folder ``inside`` of ``root``, or None: to ``root`` itself.

        Nothing is made before something is kept, and never what ``root`` lies in.
        """
        self._root = root
        self._inside = inside

    def begin(self, key: str) -> PartialFile:
        """Return a new file for the upload of this key; what an earlier try left of it is gone.

        Raises:
            OSError: the folder cannot be written to, or is a link.
        """
        with self._opened(make=True) as folder:
            prefix = f"{_PARTIAL}{hashlib.sha256(key.encode()).hexdigest()[:32]}"
            for left in os.listdir(folder):
                if left.startswith(prefix) or (left.startswith(_PARTIAL) and _is_left(left, folder)):
                    os.unlink(left, dir_fd=folder)
            name = f"{prefix}-{os.urandom(4).hex()}"  # whoever was thought dead writes to another one
            return PartialFile(os.open(name, _NEW_FILE, 0o644, dir_fd=folder), name)

    def names(self) -> list[str]:
        """Return the files that are there, hidden ones too; none where there is no folder.

        Raises:
            OSError: the folder cannot be listed.
        """
        try:
            with self._opened() as folder:
                return os.listdir(folder)
        except FileNotFoundError:
            return []

    def finish(self, file: PartialFile, name: str) -> None:
        """Give a whole file its name, for good, unless a file that has it is there.

        Raises:
            OSError: the disk does not work.
        """
        if not self.keep(file, name):
            self.discard(file)

    def keep(self, file: PartialFile, name: str, *, replaces: bool = False) -> bool:
        """Return the same, or write over a file that has the name; False: one has it, and this one waits.

        Raises:
            OSError: the disk does not work.
        """
        file.sync()
        with self._opened() as folder:
            if replaces:
                os.rename(file.name, name, src_dir_fd=folder, dst_dir_fd=folder)
            elif not _name(file.name, name, folder):
                return False
            os.fsync(folder)
        return True

    def discard(self, file: PartialFile) -> None:
        """Leave nothing of a file that is not kept."""
        file.close()
        with suppress(OSError), self._opened() as folder:
            os.unlink(file.name, dir_fd=folder)

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is gone already.

        Raises:
            OSError: it cannot be removed.
        """
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


def _is_left(name: str, folder: int) -> bool:
    try:
        return time.time() - os.lstat(name, dir_fd=folder).st_mtime > LEFT_SECONDS
    except FileNotFoundError:
        return False


def _name(partial: str, name: str, folder: int) -> bool:
    """Give a file a name that no other one has; False: one has it."""
    try:  # a second name, for a rename would write over what came between two calls
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without second names, as FAT
        if name in os.listdir(folder):
            return False
        os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    os.unlink(partial, dir_fd=folder)
    return True


async def on_disk(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What ``work`` returns, done in a thread: the inbox may lie on a share, and shares hang.

    Raises:
        OSError: as ``work``; a TimeoutError when the disk does not answer.
    """
    async with asyncio.timeout(DISK_SECONDS):
        return await asyncio.to_thread(work, *arguments, **named)


class PartialFile:
    """A file that is being written, under a name that no scan sees."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.size = 0
        self._head = b""
        self._digest = hashlib.sha256()
        self._file = os.fdopen(descriptor, "wb")

    @property
    def sha256(self) -> str:
        """Of all that was written, as hex digits."""
        return self._digest.hexdigest()

    @property
    def is_pdf(self) -> bool:
        """True if it begins as a PDF does."""
        return PDF_MARK in self._head

    def write(self, data: bytes) -> None:
        """Add to it.

        Raises:
            OSError: the disk is full or does not work.
        """
        self._head += data[: HEAD_BYTES - len(self._head)]
        self._digest.update(data)
        self._file.write(data)
        self.size += len(data)

    def sync(self) -> None:
        """Have all of it on the disk; whatever is written afterwards is refused.

        Raises:
            OSError: it is not.
        """
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Write no more; what does not get to the disk is not wanted."""
        with suppress(OSError):
            self._file.close()
