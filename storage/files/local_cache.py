"""LRU cache of files and folders from object storage, limited in bytes."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from storage.errors import BlobsUnavailable
from storage.files.object_store import ObjectStore, StoredFile

# Subfolders of blobs and readings, by the first two digits of the names in them.
SHARDS = tuple(f"{number:02x}" for number in range(256))
# An entry requested within this time may be about to be opened, so it is not evicted.
IN_USE_SECONDS = 60.0
DRAFT_SECONDS = 86_400.0
# The folder is scanned again once 1/SLACK of the limit was added.
SCANS_PER_LIMIT = 20
_log = logging.getLogger(__name__)


def list_shards(root: Path, shards: Iterable[str]) -> dict[str, StoredFile]:
    """Return the files in these shards by name; a missing shard is empty.

    Raises:
        OSError: the disk does not answer.
    """
    now, found = time.time(), {}
    for shard in shards:
        with suppress(FileNotFoundError), os.scandir(root / shard) as entries:
            for one in entries:
                stat = one.stat(follow_symlinks=False)
                found[one.name] = StoredFile(stat.st_size, now - stat.st_mtime)
    return found


def list_store(store: ObjectStore, folder: str, shards: Iterable[str]) -> dict[str, StoredFile]:
    """Return the files in these shards of a store's folder; all shards together take one request.

    Raises:
        BlobsUnavailable: the store is unreachable.
    """
    wanted = tuple(shards)
    parts = [folder] if wanted == SHARDS else [f"{folder}/{shard}" for shard in wanted]
    found: dict[str, StoredFile] = {}
    for part in parts:
        found |= store.listed(part)
    return found


def remove_entry(path: Path) -> None:
    """Remove a file, or a folder of files; idempotent."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Entry:
    used: float
    size: int
    path: Path


class LRUFileCache:
    """Entries in a folder's shards, each a file or a folder of files; calls block on the disk."""

    def __init__(self, root: Path, limit_bytes: int, ensure_stored: Callable[[str], None]) -> None:
        """Evict entries to stay within ``limit_bytes``.

        Args:
            limit_bytes: size limit; entries in use may exceed it.
            secure: makes sure that the store has the entry of this name, or raises
                ``BlobsUnavailable``: an entry that exists nowhere else is never evicted.
        """
        self._root = root
        self._limit = limit_bytes
        self._ensure_stored = ensure_stored
        # Bytes added since the last scan; starts at the limit, so that the first addition scans.
        self._unseen = limit_bytes
        self._lock = threading.Lock()

    def touch(self, name: str) -> bool:
        """Mark an entry as used; return False if there is none."""
        try:
            # The modification time serves as the time of the last use.
            os.utime(self._root / name[:2] / name)
        except FileNotFoundError:
            return False
        return True

    def names(self) -> set[str]:
        """Return the names of all entries."""
        return {path.name for path in self._paths()}

    def evict(self, added: int) -> None:
        """Count ``added`` bytes; over the limit, evict the least recently used entries."""
        with self._lock:
            self._unseen += added
            if self._unseen < self._limit / SCANS_PER_LIMIT:
                return
            self._unseen = 0
            for path in self._paths(drafts=True):  # of processes that died while writing
                if time.time() - _entry(path).used > DRAFT_SECONDS:
                    remove_entry(path)
            entries = sorted((_entry(path) for path in self._paths()), key=lambda one: one.used)
            excess = sum(one.size for one in entries) - self._limit
            recent = time.time() - IN_USE_SECONDS
            try:
                for one in entries:
                    if excess <= 0 or one.used > recent:
                        return
                    self._ensure_stored(one.path.name)
                    if _entry(one.path).used <= recent:  # it may have been opened during the upload
                        remove_entry(one.path)
                        excess -= one.size
            except BlobsUnavailable as error:
                _log.warning("cache eviction failed, cache is over its limit: %s", error)

    def _paths(self, *, drafts: bool = False) -> Iterator[Path]:
        """Yield all entries, or all drafts, whose names begin with a dot."""
        for shard in SHARDS:
            with suppress(FileNotFoundError):
                for path in (self._root / shard).iterdir():
                    if path.name.startswith(".") == drafts:
                        yield path


def _entry(path: Path) -> _Entry:
    try:
        stat = path.stat()
        files = [file.stat().st_size for file in path.iterdir()] if path.is_dir() else [stat.st_size]
    except FileNotFoundError:  # another process has evicted it
        return _Entry(0.0, 0, path)
    return _Entry(stat.st_mtime, sum(files), path)
