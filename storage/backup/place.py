"""Where a backup lies: a local folder, or any address that fsspec knows.

Contents are kept once, under their sha256, and never change; the manifest that names them is written last.
fsspec's own packages find the credentials, as s3fs does in ``AWS_ACCESS_KEY_ID``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from storage.errors import BackupError, DamagedBackup, SettingsError

MANIFEST = "manifest.json"
CONTENTS = "contents"
BLOCK = 1 << 20


def hash_file(path: Path) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class BackupPlace:
    """A folder of contents with a manifest; calls wait for disk or network, so run them in a thread.

    Every method raises ``BackupError`` when the place is full, away or refuses us; no message repeats the
    address, which may hold a password.
    """

    def __init__(self, url: str) -> None:
        """Choose the place; nothing is made or asked yet.

        Raises:
            SettingsError: no installed package knows the protocol.
        """
        try:
            self._system, self._root = url_to_fs(url, skip_instance_cache=True, use_listings_cache=False)
        except ImportError as error:
            raise SettingsError(f"the address of the backup needs a further package: {error}") from error
        except ValueError as error:
            raise SettingsError(
                "the address of the backup begins with a protocol that we do not know"
            ) from error
        self.is_local = isinstance(self._system, LocalFileSystem)

    @property
    def local_folder(self) -> Path | None:
        """The folder on this machine; None of a place elsewhere."""
        return Path(self._root) if self.is_local else None

    def read_manifest(self) -> bytes | None:
        """The manifest as it was written; None where there is none."""
        with self._translated_errors("be read"):
            try:
                data: bytes = self._system.cat_file(self._path(MANIFEST))
            except FileNotFoundError:
                return None
            return data

    def write_manifest(self, data: bytes, draft: Path) -> None:
        """Replace the manifest, whole: from now on the backup is the one that it names."""
        draft.write_bytes(data)
        with self._translated_errors("be written"):
            self._put(draft, MANIFEST)

    @cached_property
    def held(self) -> dict[str, int]:
        """sha256 -> size of every content that lies here, as it was when this was first asked."""
        with self._translated_errors("be read"):
            try:
                found: dict[str, Any] = self._system.find(self._path(CONTENTS), detail=True)
            except FileNotFoundError:
                return {}
            return {name.rpartition("/")[2]: int(info["size"] or 0) for name, info in found.items()}

    def keep(self, file: Path, sha256: str, size: int) -> bool:
        """Keep a content; returns whether it had to be copied.

        Raises:
            FileNotFoundError: the file is gone.
        """
        if self.held.get(sha256) == size:
            return False
        if not file.exists():
            raise FileNotFoundError(file)
        with self._translated_errors("be written"):
            self._put(file, _content(sha256))
        self.held[sha256] = size
        return True

    def fetch(self, sha256: str, name: str, target: Path) -> None:
        """Write a content to ``target``, once every byte of it was compared with its hash.

        Args:
            sha256: of the content.
            name: what it is in the home, for the message.
            target: takes the place of a file that is there.

        Raises:
            DamagedBackup: it is missing, or not what it was.
        """
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft, digest = target.with_name(f".{target.name[:100]}.{uuid4().hex}"), hashlib.sha256()
        try:
            with self._translated_errors("be read"):
                try:
                    source = self._system.open(self._path(_content(sha256)), "rb")
                except FileNotFoundError:
                    raise DamagedBackup(f"the backup has lost {name}") from None
                with source, draft.open("wb") as file:
                    while block := source.read(BLOCK):
                        digest.update(block)
                        file.write(block)
            if digest.hexdigest() != sha256:
                raise DamagedBackup(f"the backup's copy of {name} is damaged ({_content(sha256)})")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def drop(self, wanted: Callable[[str], bool]) -> int:
        """Remove the contents that are not wanted any more; returns how many."""
        unwanted = [name for name in self.held if not wanted(name)]
        with self._translated_errors("be written"):
            for name in unwanted:
                # What a broken upload left has no sha256 for a name.
                self._system.rm_file(self._path(_content(name)))
                del self.held[name]
        return len(unwanted)

    def _put(self, file: Path, name: str) -> None:
        """Copy a file so that it appears whole, or not at all: a store does so, a folder wants a rename."""
        if not self.is_local:
            self._system.put_file(str(file), self._path(name))
            return
        place = Path(self._path(name))
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = place.with_name(f"{place.name}.part")
        try:
            with file.open("rb") as source, draft.open("wb") as target:
                draft.chmod(0o600)
                shutil.copyfileobj(source, target, BLOCK)
                target.flush()
                os.fsync(target.fileno())
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _translated_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (DamagedBackup, FileNotFoundError):
            raise
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BackupError(f"the backup's place cannot {what}: {reason}") from error
        except Exception as error:  # each package behind fsspec has errors of its own
            raise BackupError(f"the backup's place cannot {what} ({type(error).__name__})") from error


def _content(sha256: str) -> str:
    return f"{CONTENTS}/{sha256[:2]}/{sha256}"
