"""Rendered images of pages and page regions, on this machine and in object storage.

A machine without a copy of a PDF downloads a page that another one rendered, instead of the whole PDF. In
object storage images are sealed, in one folder per content.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from storage.files.local_cache import list_store
from storage.files.object_store import SEAL_BYTES, ObjectStore, space_for_seal
from storage.models import PageImage

_NAME = re.compile(r"([0-9a-f]{64})-")
_FOLDER = "images"
# Magic bytes of an image format -> its suffix.
_KINDS = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg"}
# Up to this many contents are queried one by one; for more, whole shards are listed.
MAX_SINGLE_LISTINGS = 20


class ImageFiles:
    """Images named ``<sha256 of the PDF>-<page>-<resolution>`` with the suffix of their format.

    Calls block on disk or network, so run them outside the event loop. Those that use the store raise
    ``BlobsUnavailable`` if it is unreachable, the others ``OSError``.
    """

    def __init__(self, folder: Path, store: ObjectStore | None = None) -> None:
        """Use the local ``folder``, which need not exist."""
        self._folder = folder
        self._store = store
        # Separate, so that a failed upload does not make other calls fail fast.
        self._sending = store.background_copy() if store else None

    def contents(self) -> set[str]:
        """Return the contents that have images on this machine."""
        return {file.name[:64] for file in self._here()}

    def count(self, contents: Collection[str]) -> int:
        """Return the number of images of these contents, here or in the store."""
        names = {file.stem for file in self._here() if file.name[:64] in contents}
        return len(names | {name for name in self._stored(contents) if name[:64] in contents})

    def evict_contents(self, contents: Collection[str]) -> None:
        """Remove the images of these contents from this machine."""
        for file in self._here():
            if file.name[:64] in contents:
                file.unlink(missing_ok=True)

    def sweep(self, contents: Collection[str], limit: float) -> int:
        """Remove the images of these contents, and drafts untouched since ``limit``; return their number."""
        gone = [file for file in self._here() if file.name[:64] in contents]
        if self._folder.is_dir():  # drafts of processes that died while writing
            gone += [file for file in self._folder.glob(".*") if is_older(file, limit)]
        for file in gone:
            file.unlink(missing_ok=True)
        return len(gone)

    def read(self, name: str) -> PageImage | None:
        """Return an image of this machine, named without its suffix, and mark it as used."""
        for file in self._folder.glob(f"{name}.*"):
            media_type, _ = mimetypes.guess_type(file.name)
            try:
                os.utime(file)
                return PageImage(file.read_bytes(), media_type or "application/octet-stream")
            except FileNotFoundError:  # another process has evicted it
                return None
        return None

    def copy_here(self, name: str) -> bool:
        """Download an image, named without its suffix; return False if the store has none that is intact."""
        if self._store is None:
            return False
        with self._draft() as draft:
            try:
                is_whole = self._store.copy_sealed(_place(name), draft)
            except FileNotFoundError:
                return False
            data = draft.read_bytes()[SEAL_BYTES:] if is_whole else b""
        suffix = next((suffix for head, suffix in _KINDS.items() if data.startswith(head)), None)
        if suffix is None:
            return False  # it is rendered again, which overwrites it
        self._write(f"{name}{suffix}", data)
        return True

    def write(self, name: str, image: PageImage) -> Path:
        """Write an image atomically; return its path."""
        suffix = mimetypes.guess_extension(image.media_type) or ".bin"
        return self._write(f"{name}{suffix}", image.data)

    def _write(self, file: str, data: bytes) -> Path:
        with self._draft() as draft:
            draft.write_bytes(data)
            return draft.replace(self._folder / file)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f".{uuid4().hex}"
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    def evict_lru(self, limit_bytes: int) -> None:
        """Evict the least recently used images of this machine until the rest fits."""
        pictures = []
        for file in self._here():
            with suppress(FileNotFoundError):  # another process has evicted it
                status = file.stat()
                pictures.append((status.st_mtime, status.st_size, file))
        excess = sum(size for _, size, _ in pictures) - limit_bytes
        for _, size, file in sorted(pictures):
            if excess <= 0:
                return
            excess -= size
            file.unlink(missing_ok=True)

    def upload(self, picture: Path) -> None:
        """Upload an image of this machine; do nothing if it was just evicted."""
        if self._sending is None:
            return
        with self._draft() as draft, suppress(FileNotFoundError):
            draft.write_bytes(space_for_seal() + picture.read_bytes())
            self._sending.put_sealed(draft, _place(picture.stem))

    def remove(self, contents: Collection[str]) -> None:
        """Remove the images of these contents from the store; idempotent."""
        if self._store is None:
            return
        wanted = set(contents)
        if (
            len(wanted) > MAX_SINGLE_LISTINGS and not self._store.local_folder
        ):  # a local folder may hold hidden files
            wanted &= {name[:64] for name in self._stored(wanted)}
        for sha256 in wanted:
            self._store.remove_folder(_of(sha256))

    def stored_contents(self, shards: Iterable[str]) -> set[str]:
        """Return the contents in these shards that have images in the store."""
        return {name[:64] for name in list_store(self._store, _FOLDER, shards)} if self._store else set()

    def _stored(self, contents: Collection[str]) -> set[str]:
        """Return the names of all stored images of these contents; other contents may be included."""
        if self._store is None:
            return set()
        if len(contents) > MAX_SINGLE_LISTINGS:
            return set(list_store(self._store, _FOLDER, sorted({sha256[:2] for sha256 in contents})))
        return {name for sha256 in contents for name in self._store.listed(_of(sha256))}

    def _here(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [file for file in self._folder.iterdir() if _NAME.match(file.name)]


def _of(sha256: str) -> str:
    return f"{_FOLDER}/{sha256[:2]}/{sha256}"


def _place(name: str) -> str:
    return f"{_of(name[:64])}/{name}"


def is_older(file: Path, limit: float) -> bool:
    """True if a file was last touched by ``limit``; False if it is gone, as it was renamed into place."""
    try:
        return file.stat().st_mtime <= limit
    except FileNotFoundError:
        return False
