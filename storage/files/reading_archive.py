"""Readings in object storage, one sealed ZIP file each, with local copies of recently used ones."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from storage.errors import BlobsUnavailable, LostReading
from storage.files.file_format import write_folder_atomically
from storage.files.local_cache import LRUFileCache, list_store
from storage.files.object_store import ObjectStore, StoredFile, space_for_seal
from storage.threads import run_in_thread

_FOLDER, _SUFFIX = "readings", ".zip"
# In a folder identical to the stored reading; a folder without it is being written, or was left by a crash.
STORED_MARK = ".stored"


class ReadingArchive:
    """Readings in object storage.

    Every method raises ``BlobsUnavailable`` if the store is unreachable or the disk is full.
    """

    def __init__(self, store: ObjectStore, root: Path, cache_bytes: int) -> None:
        """Cache at most ``cache_bytes`` under ``root``, the folder of ``ReadingFiles``."""
        self._store = store
        self._root = root
        self._cache = LRUFileCache(root, cache_bytes, self._ensure_stored)
        self._fetching: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    async def fetch(self, reading_id: UUID) -> None:
        """Download a reading's files into their folder, unless present; they stay for at least a minute.

        Raises:
            LostReading: the store has none, or has corrupted it.
        """
        async with self._fetching.setdefault(reading_id, asyncio.Lock()):
            if not await asyncio.to_thread(self._is_copied, reading_id):
                await run_in_thread(partial(self._copy_here, reading_id))

    async def upload(self, reading_id: UUID) -> None:
        """Upload a reading's folder."""
        await run_in_thread(partial(self._upload, reading_id))

    async def has(self, reading_id: UUID) -> bool:
        """True if the store has the reading."""
        return await run_in_thread(lambda: self._store.size(_name(str(reading_id)))) is not None

    async def remove(self, names: Collection[str]) -> None:
        """Remove readings from the store; idempotent."""
        await run_in_thread(lambda: self._store.remove([_name(name) for name in names]))

    async def listed(self, shards: Iterable[str]) -> dict[str, StoredFile]:
        """Return the store's readings in these shards, by name."""
        found = await run_in_thread(lambda: list_store(self._store, _FOLDER, shards))
        return {name.removesuffix(_SUFFIX): one for name, one in found.items()}

    def cached(self) -> set[UUID]:
        """Return the readings with a local folder; other entries are skipped."""
        try:
            names = self._cache.names()
        except OSError as error:
            raise BlobsUnavailable(f"the copies of readings cannot be listed: {error.strerror}") from error
        found = set()
        for name in names:
            with suppress(ValueError):
                found.add(UUID(name))
        return found

    def _is_copied(self, reading_id: UUID) -> bool:
        return (self._folder(reading_id) / STORED_MARK).exists() and self._cache.touch(str(reading_id))

    def _copy_here(self, reading_id: UUID) -> None:
        """Download and unpack a reading; remove a corrupt one from the store."""
        folder, name = self._folder(reading_id), _name(str(reading_id))

        def fill(draft_folder: Path) -> None:
            with zipfile.ZipFile(draft) as packed:  # sealed by us, so the archive's paths can be trusted
                packed.extractall(draft_folder)
            (draft_folder / STORED_MARK).touch()

        with self._draft(reading_id) as draft:
            try:
                if not self._store.copy_sealed(name, draft):
                    self._store.remove([name])
                    raise LostReading("the files of a reading are corrupt in object storage")
                size = draft.stat().st_size
                write_folder_atomically(folder, fill)
            except FileNotFoundError:
                # Not uploaded yet: a reading that exists only here is being made.
                if folder.exists():
                    return
                raise LostReading("the store has lost the files of a reading") from None
        self._cache.evict(size)

    def _upload(self, reading_id: UUID) -> None:
        with self._draft(reading_id) as draft:
            with draft.open("wb") as target:
                target.write(space_for_seal())
                with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
                    for file in sorted(self._folder(reading_id).iterdir()):
                        if file.name != STORED_MARK:
                            packed.write(file, file.name)
            self._store.put_sealed(draft, _name(str(reading_id)))
            size = draft.stat().st_size
            (self._folder(reading_id) / STORED_MARK).touch()
        self._cache.evict(size)

    def _ensure_stored(self, name: str) -> None:
        if self._store.size(_name(name)) is None:
            self._upload(UUID(name))

    def _folder(self, reading_id: UUID) -> Path:
        return self._root / reading_id.hex[:2] / str(reading_id)

    @contextmanager
    def _draft(self, reading_id: UUID) -> Iterator[Path]:
        """Yield a temporary file next to the folder; remove it afterwards."""
        folder = self._folder(reading_id).parent
        draft = folder / f".{uuid4().hex}{_SUFFIX}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            yield draft
        except OSError as error:
            raise BlobsUnavailable(f"the files of a reading cannot be copied: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)


def _name(reading: str) -> str:
    return f"{_FOLDER}/{reading.lstrip('.')[:2]}/{reading}{_SUFFIX}"
