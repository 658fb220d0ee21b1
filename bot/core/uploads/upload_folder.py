"""The folder that a channel's uploads lie in, written to so that a scan sees whole files only.

It is ``uploads/`` in the channel's own folder of the inbox: no other channel reads that, and nothing else is
kept equal with it. No link on the way is followed. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from storage.chat.notification_events import UPLOADS_FOLDER

HEAD_BYTES = 1024
"""Of a file's beginning, in which readers look for the mark of a PDF."""
PDF_MARK = b"%PDF-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadFolder:
    """The uploads of one channel."""

    def __init__(self, channel_folder: Path) -> None:
        """Nothing is made before something is kept; ``channel_folder`` lies in the inbox."""
        self._channel_folder = channel_folder

    def begin(self, key: str) -> PartialFile:
        """A new file for the upload of this key; what an earlier try left of it is gone.

        Raises:
            OSError: the folder cannot be written to, or is a link.
        """
        with self._opened(make=True) as folder:
            prefix = f".upload-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
            for left in os.listdir(folder):
                if left.startswith(prefix):
                    os.unlink(left, dir_fd=folder)
            name = f"{prefix}-{os.urandom(4).hex()}"  # whoever was thought dead writes to another one
            return PartialFile(os.open(name, _NEW_FILE, 0o644, dir_fd=folder), name)

    def names(self) -> list[str]:
        """The files that are there, hidden ones too; none where there is no folder.

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
        file.sync()
        with self._opened() as folder:
            if name in os.listdir(folder):
                os.unlink(file.name, dir_fd=folder)
            else:
                os.rename(file.name, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

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
            self._channel_folder.mkdir(exist_ok=True)
        above = os.open(self._channel_folder, _FOLDER)
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(UPLOADS_FOLDER, dir_fd=above)
            folder = os.open(UPLOADS_FOLDER, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
        try:
            yield folder
        finally:
            os.close(folder)


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
        """Whether it begins as a PDF does."""
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
        """Have all of it on the disk.

        Raises:
            OSError: it is not.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        """Write no more; what does not get to the disk is not wanted."""
        with suppress(OSError):
            self._file.close()
