"""Content-addressed blob store: each content once, under its sha256, in a local folder or object storage.

A blob is written to a temporary file on the same file system and becomes visible complete and durable, or not
at all. With object storage, the folder is a cache of recently used blobs.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary

from storage.crash_points import reach
from storage.errors import BlobsUnavailable
from storage.files.image_files import ImageFiles, is_older
from storage.files.local_cache import LRUFileCache, list_shards, list_store
from storage.files.object_store import ObjectStore, StoredFile, hash_file
from storage.threads import run_in_thread

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = "temporary"
_LOCK = "lock"
_FOLDER = "blobs"
# How long additions wait for a removal and vice versa, and the poll interval.
LOCK_SECONDS, LOCK_POLL_SECONDS = 30.0, 0.01

# Called with True for an exclusive lock, False for a shared one.
ContentLock = Callable[[bool], AbstractAsyncContextManager[None]]
_log = logging.getLogger(__name__)


class Blobs:
    """Blobs under ``root``; calls block on disk or network, so run them outside the event loop.

    Calls raise BlobsUnavailable if disk or object storage does not work.
    """

    def __init__(
        self,
        root: Path,
        *,
        store: ObjectStore | None = None,
        cache_bytes: int = 0,
        lock: ContentLock | None = None,
    ) -> None:
        """Create the folders.

        Args:
            root: folder of the blobs, or of their local copies.
            store: object storage of all blobs, shared by several machines.
            cache_bytes: maximum size of the copies.
            lock: held shared by additions and exclusively by removals, across machines.

        Raises:
            BlobsUnavailable: they cannot be created.
        """
        self._root = root
        self._store = store
        self._cache = LRUFileCache(root, cache_bytes, self._ensure_stored)
        self._lock = lock
        # One lock per content being fetched; dropped once no task holds it or waits for it.
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.images = ImageFiles(root.with_name("images"), store)
        self._temporary = root / _TEMPORARY
        with _translated_errors():
            self._temporary.mkdir(parents=True, exist_ok=True, mode=0o700)

    def new_temporary(self) -> Path:
        """Return an unused path on the file system of the blobs; the file is not created."""
        return self._temporary / uuid4().hex

    def adopt(self, temporary: Path, sha256: str) -> Path:
        """Durably turn a temporary file into the blob ``sha256``; keep an existing blob.

        Raises:
            BlobsUnavailable: the disk is full or failing; the temporary file is still there.
        """
        place = self.path(sha256)
        self.upload(temporary, sha256)
        # Order matters: fsync the data, rename, then fsync the folder that holds the new name.
        with _translated_errors():
            size = temporary.stat().st_size
            _synchronise(temporary)
            if place.exists():
                temporary.unlink()
                return place
            place.parent.mkdir(exist_ok=True, mode=0o700)
            _synchronise(self._root)
            temporary.chmod(0o400)
            temporary.replace(place)
            _synchronise(place.parent)
        if self._store:
            self._cache.evict(size)
        return place

    def upload(self, file: Path, sha256: str) -> None:
        """Copy a content to object storage, if there is one that lacks it."""
        if self._store and self._store.size(_stored(sha256)) is None:
            self._store.put(file, _stored(sha256))

    def exists(self, sha256: str) -> bool:
        """True if the content exists: in object storage if there is one, else on disk."""
        if self._store:
            return self._store.size(_stored(sha256)) is not None
        return self.path(sha256).exists()

    async def fetch(self, sha256: str) -> Path:
        """Return a local path of a content; download it first if it is only in object storage.

        The file stays for at least a minute: fetch it again before opening it later.

        Raises:
            BlobsUnavailable: the store is unreachable, or has lost or corrupted it.
        """
        place = self.path(sha256)
        if self._store is None or await asyncio.to_thread(self._cache.touch, sha256):
            return place
        async with self._fetching.setdefault(sha256, asyncio.Lock()):
            if not place.exists():
                await run_in_thread(lambda: self._copy_here(sha256))
        return place

    def _copy_here(self, sha256: str) -> None:
        """Download a content and verify its hash; remove a corrupt one from the store."""
        if self._store is None:
            return
        temporary = self.new_temporary()
        try:
            # Twice: the download may be at fault, not the stored object.
            for _ in range(2):
                if self._store.copy_to(_stored(sha256), temporary) == sha256:
                    break
            else:
                self._store.remove([_stored(sha256)])
                raise BlobsUnavailable(
                    "a blob in object storage is corrupt: it will be copied again from its folder"
                )
            with _translated_errors():
                size, place = temporary.stat().st_size, self.path(sha256)
                temporary.chmod(0o400)
                place.parent.mkdir(exist_ok=True, mode=0o700)
                temporary.replace(place)
        except FileNotFoundError:
            raise BlobsUnavailable(
                "a blob is missing from object storage: it will be copied again from its folder"
            ) from None
        finally:
            temporary.unlink(missing_ok=True)
        self._cache.evict(size)

    def _ensure_stored(self, sha256: str) -> None:
        """Make sure that object storage has the local content."""
        self.upload(self.path(sha256), sha256)

    def reupload(self, sha256: str) -> bool:
        """Upload a content that object storage lost; return False if there is no intact local copy."""
        place = self.path(sha256)
        with _translated_errors():
            if self._store is None or not place.exists() or hash_file(place) != sha256:
                return False
        self._store.put(place, _stored(sha256))
        return True

    def ping(self) -> None:
        """Verify that a file can be written.

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
        """Return the path of a blob, existing or not.

        Raises:
            ValueError: not a lower-case hexadecimal sha256.
        """
        if not _SHA256.fullmatch(sha256):
            raise ValueError("not a sha256")
        return self._root / sha256[:2] / sha256

    @asynccontextmanager
    async def adding(self) -> AsyncIterator[None]:
        """Block removals in this context, in which contents are adopted and recorded in SQL.

        Enter it before a transaction, never inside one.

        Raises:
            BlobsUnavailable: a removal took too long, or the disk does not work.
        """
        async with self._locked(fcntl.LOCK_SH):
            yield

    @asynccontextmanager
    async def removing(self) -> AsyncIterator[None]:
        """Block additions in this context, in which unreferenced contents are found in SQL and removed.

        As ``adding``, it works across processes.
        """
        async with self._locked(fcntl.LOCK_EX):
            yield

    @asynccontextmanager
    async def _locked(self, kind: int) -> AsyncIterator[None]:
        """Lock among the processes of this home first, then across machines."""
        async with (
            self._locked_here(kind),
            self._lock(kind == fcntl.LOCK_EX) if self._lock else nullcontext(),
        ):
            yield

    @asynccontextmanager
    async def _locked_here(self, kind: int) -> AsyncIterator[None]:
        with _translated_errors():
            lock = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                while not _acquire_lock(lock, kind):  # noqa: ASYNC110 - another process signals no event of ours
                    await asyncio.sleep(LOCK_POLL_SECONDS)
        except TimeoutError:
            os.close(lock)
            raise BlobsUnavailable("timed out waiting for the blob lock: retrying") from None
        except BaseException:
            os.close(lock)
            raise
        try:
            yield
        finally:
            os.close(lock)  # releases the lock

    def remove_all(self, names: Collection[str]) -> None:
        """Remove blobs, from object storage first; blocking and idempotent."""
        if self._store and names:
            self._store.remove([_stored(sha256) for sha256 in names])
            self.images.remove(names)  # after the contents: a later upload finds its content gone
            self.evict(names)
            return
        for sha256 in names:
            self.remove(sha256)
            reach("amid-purge")

    def listed(self, shards: Iterable[str]) -> dict[str, StoredFile]:
        """Return the blobs whose sha256 begin with these pairs of digits, from disk or object storage."""
        if self._store:
            return list_store(self._store, _FOLDER, shards)
        with _translated_errors():
            return list_shards(self._root, shards)

    def remove(self, sha256: str) -> None:
        """Remove a blob; idempotent."""
        if self._store:
            self._store.remove([_stored(sha256)])
            self.images.remove([sha256])
        with _translated_errors():
            self.path(sha256).unlink(missing_ok=True)

    def cached(self) -> set[str]:
        """Return the contents with copies or images on this machine, if object storage has the originals."""
        if self._store is None:
            return set()
        with _translated_errors():
            copied = {name for name in self._cache.names() if _SHA256.fullmatch(name)}
            return copied | self.images.contents()

    def evict(self, names: Collection[str]) -> None:
        """Evict this machine's copies and images of these contents."""
        with _translated_errors():
            for sha256 in names:
                self.path(sha256).unlink(missing_ok=True)
            self.images.evict_contents(names)

    async def copy_image(self, name: str) -> bool:
        """Download a page image if this machine has no copy of the PDF to render it from.

        Args:
            name: as ``ImageFiles`` names it, without a suffix.
        """
        if self._store is None or self.path(name[:64]).exists():
            return False
        return await run_in_thread(lambda: self._copy_image(name))

    def _copy_image(self, name: str) -> bool:
        with _translated_errors():
            return self.images.copy_here(name)

    def upload_image(self, picture: Path) -> None:
        """Upload a page image for the other machines, unless its content is removed in the meantime."""
        if self._store is None:
            return
        with _translated_errors():
            self.images.upload(picture)
        if not self.exists(sha256 := picture.name[:64]):
            self.images.remove([sha256])

    def drop_stray_images(self, shards: Iterable[str], held: Collection[str]) -> None:
        """Remove images from these shards of object storage whose contents are not among ``held``."""
        self.images.remove(self.images.stored_contents(shards) - set(held))

    def images_of(self, names: Collection[str]) -> int:
        """Return the number of images of pages, and of regions of pages, of these contents."""
        with _translated_errors():
            return self.images.count(names)

    def sweep(self, older_than: float = 86_400) -> int:
        """Remove temporary files older than ``older_than`` seconds, and orphaned images; return their number.

        Images are orphaned once their content is gone; with object storage, ``evict`` removes them instead.
        """
        limit = time.time() - older_than
        with _translated_errors():
            gone = [file for file in self._temporary.iterdir() if is_older(file, limit)]
            for file in gone:
                file.unlink(missing_ok=True)
            drawn = set() if self._store else self.images.contents()
            without = {sha256 for sha256 in drawn if not self.path(sha256).exists()}
            return len(gone) + self.images.sweep(without, limit)


def _stored(sha256: str) -> str:
    return f"{_FOLDER}/{sha256[:2]}/{sha256}"


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BlobsUnavailable(f"the blob store does not work: {error.strerror}") from error


def _acquire_lock(lock: int, kind: int) -> bool:
    with _translated_errors():
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _synchronise(path: Path) -> None:
    """Flush a file's bytes, or a folder's entries, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
