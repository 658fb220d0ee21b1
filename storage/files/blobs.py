"""The blob store: every content once, under its sha256, in a local folder.

A blob is written to a temporary file on the same file system and becomes visible whole and durable,
or not at all.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from storage.crash_points import reach
from storage.errors import BlobsUnavailable

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PICTURE = re.compile(r"[0-9a-f]{64}-")
_TEMPORARY = "temporary"
_LOCK = "lock"
LOCK_SECONDS, LOCK_POLL_SECONDS = 30.0, 0.01
"""How long an arrival waits for a removal and the other way round, and how often it checks."""

SHARDS = tuple(f"{number:02x}" for number in range(256))


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """An entry of a shard: one of the 256 folders that blobs and readings are spread over."""

    size: int
    seconds: float
    """Since it was written."""


def list_shards(root: Path, shards: Iterable[str]) -> dict[str, ShardEntry]:
    """What lies in these shards, by name; nothing where there is no such shard (yet).

    Raises:
        OSError: the disk does not answer.
    """
    now, found = time.time(), {}
    for shard in shards:
        with suppress(FileNotFoundError), os.scandir(root / shard) as entries:
            for one in entries:
                stat = one.stat(follow_symlinks=False)
                found[one.name] = ShardEntry(stat.st_size, now - stat.st_mtime)
    return found


class Blobs:
    """Contents under ``root``; its calls wait for the disk, so run them outside the event loop."""

    def __init__(self, root: Path, pictures: Path | None = None) -> None:
        """Make the folders.

        Args:
            root: where the blobs lie.
            pictures: where drawn pages lie, named ``<sha256>-<page>-<resolution>``; it need not exist.

        Raises:
            BlobsUnavailable: they cannot be made.
        """
        self._root = root
        self._pictures = pictures
        self._temporary = root / _TEMPORARY
        with _translated_errors():
            self._temporary.mkdir(parents=True, exist_ok=True, mode=0o700)

    def new_temporary(self) -> Path:
        """A path that nobody else uses, on the file system of the blobs; the file is not made yet."""
        return self._temporary / uuid4().hex

    def adopt(self, temporary: Path, sha256: str) -> Path:
        """Make a temporary file the blob ``sha256``, durably; a blob that is already there stays.

        Raises:
            BlobsUnavailable: the disk is full or failing; the temporary file is still there.
        """
        place = self.path(sha256)
        with _translated_errors():
            _synchronise(temporary)
            if place.exists():
                temporary.unlink()
                return place
            place.parent.mkdir(exist_ok=True, mode=0o700)
            _synchronise(self._root)
            temporary.chmod(0o400)
            temporary.replace(place)
            _synchronise(place.parent)
        return place

    def ping(self) -> None:
        """Return when a file can be written.

        Raises:
            BlobsUnavailable: the folder is gone or read-only, or the disk is full.
        """
        trial = self.new_temporary()
        with _translated_errors():
            try:
                trial.write_bytes(bytes(4096))
            finally:
                trial.unlink(missing_ok=True)

    def path(self, sha256: str) -> Path:
        """Where a blob lies, or would lie.

        Raises:
            ValueError: not a lower-case hexadecimal sha256.
        """
        if not _SHA256.fullmatch(sha256):
            raise ValueError("not a sha256")
        return self._root / sha256[:2] / sha256

    @asynccontextmanager
    async def arriving(self) -> AsyncIterator[None]:
        """Nothing is removed until the context ends: for whoever adopts contents and writes them into SQL.

        Enter it before a transaction, never inside one.

        Raises:
            BlobsUnavailable: a removal took too long, or the disk does not work.
        """
        async with self._locked(fcntl.LOCK_SH):
            yield

    @asynccontextmanager
    async def removing(self) -> AsyncIterator[None]:
        """Nothing arrives until the context ends: for whoever asks SQL what nobody wants, and removes it.

        As ``arriving``: of several processes on one home, too.
        """
        async with self._locked(fcntl.LOCK_EX):
            yield

    @asynccontextmanager
    async def _locked(self, kind: int) -> AsyncIterator[None]:
        with _translated_errors():
            lock = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                while not _take_lock(lock, kind):  # noqa: ASYNC110 - another process has no event of ours
                    await asyncio.sleep(LOCK_POLL_SECONDS)
        except TimeoutError:
            os.close(lock)
            raise BlobsUnavailable("files arrive or are removed all the time: trying again") from None
        except BaseException:
            os.close(lock)
            raise
        try:
            yield
        finally:
            os.close(lock)  # which gives it back

    def remove_all(self, names: Collection[str]) -> None:
        """Remove blobs, in this thread; idempotent."""
        for sha256 in names:
            self.remove(sha256)
            reach("amid-purge")

    def listed(self, shards: Iterable[str]) -> dict[str, ShardEntry]:
        """The blobs whose sha256 begin with these pairs of digits, as they lie on the disk.

        Raises:
            BlobsUnavailable: the disk does not answer.
        """
        with _translated_errors():
            return list_shards(self._root, shards)

    def remove(self, sha256: str) -> None:
        """Remove a blob; idempotent."""
        with _translated_errors():
            self.path(sha256).unlink(missing_ok=True)

    def pictures_of(self, names: Collection[str]) -> int:
        """How many pictures of pages, and of parts of them, were drawn of these contents."""
        with _translated_errors():
            return sum(file.name[:64] in names for file in self._drawn())

    def _drawn(self) -> list[Path]:
        if self._pictures is None or not self._pictures.is_dir():
            return []
        return [file for file in self._pictures.iterdir() if _PICTURE.match(file.name)]

    def sweep(self, older_than: float = 86_400) -> int:
        """Remove temporary files that no one has touched for ``older_than`` seconds; return how many.

        Drawn pages of contents that are gone are removed, too, and counted.
        """
        limit = time.time() - older_than
        with _translated_errors():
            gone = [file for file in self._temporary.iterdir() if _is_older(file, limit)]
            gone += [file for file in self._drawn() if not self.path(file.name[:64]).exists()]
            if self._pictures and self._pictures.is_dir():  # of processes that died while they wrote one
                gone += [file for file in self._pictures.glob(".*") if _is_older(file, limit)]
            for file in gone:
                file.unlink(missing_ok=True)
        return len(gone)


def _is_older(file: Path, limit: float) -> bool:
    """Whether a file was last touched by then; one that is gone by now became a blob, and is not."""
    try:
        return file.stat().st_mtime <= limit
    except FileNotFoundError:
        return False


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BlobsUnavailable(f"the blob store does not work: {error.strerror}") from error


def _take_lock(lock: int, kind: int) -> bool:
    with _translated_errors():
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _synchronise(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
