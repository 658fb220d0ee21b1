"""Destination of a backup: a local folder, or any fsspec URL.

Contents are stored once, under their sha256, and never change; the manifest that names them is written last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from storage.errors import BackupError, DamagedBackup
from storage.files.object_store import ObjectStore
from storage.settings import AwsSettings

MANIFEST = "manifest.json"
CONTENTS = "contents"


class BackupDestination:
    """Folder of contents with a manifest; calls block on disk or network, so run them in a thread.

    Every method raises ``BackupError`` if the place is full, unreachable or refuses access.
    """

    def __init__(self, url: str, account: AwsSettings | None = None) -> None:
        """Parse the URL; nothing is created or requested yet. ``account``: credentials for S3.

        Raises:
            SettingsError: no installed package supports the protocol.
        """
        self._store = ObjectStore(url, BackupError, "the backup's place", account)

    @property
    def local_folder(self) -> Path | None:
        """Folder on this machine; None for remote storage."""
        return self._store.local_folder

    def read_manifest(self) -> bytes | None:
        """Return the manifest; None if there is none."""
        return self._store.read(MANIFEST)

    def write_manifest(self, data: bytes, draft: Path) -> None:
        """Replace the manifest atomically, which commits the backup."""
        draft.write_bytes(data)
        self._store.put(draft, MANIFEST)

    @cached_property
    def held(self) -> dict[str, int]:
        """Size of every content in the place, by sha256; cached on first access."""
        return {name: one.size for name, one in self._store.listed(CONTENTS).items()}

    def keep(self, file: Path, sha256: str, size: int) -> bool:
        """Store a content; return True if it had to be copied.

        Raises:
            FileNotFoundError: the file is gone.
        """
        if self.held.get(sha256) == size:
            return False
        if not file.exists():
            raise FileNotFoundError(file)
        self._store.put(file, _content(sha256))
        self.held[sha256] = size
        return True

    def fetch(self, sha256: str, name: str, target: Path) -> None:
        """Copy a content to ``target`` after verifying its hash.

        Args:
            name: its name in the home, for the message.
            target: overwritten if it exists.

        Raises:
            DamagedBackup: it is missing or corrupt.
        """
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = target.with_name(f".{target.name[:100]}.{uuid4().hex}")
        try:
            try:
                digest = self._store.copy_to(_content(sha256), draft, None)
            except FileNotFoundError:
                raise DamagedBackup(f"the backup has lost {name}") from None
            if digest != sha256:
                raise DamagedBackup(f"the backup's copy of {name} is damaged ({_content(sha256)})")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def drop(self, wanted: Callable[[str], bool]) -> int:
        """Remove the contents that are not wanted; return their number."""
        # An interrupted upload leaves a name that is no sha256, so it is removed, too.
        unwanted = [name for name in self.held if not wanted(name)]
        self._store.remove([_content(name) for name in unwanted])
        for name in unwanted:
            del self.held[name]
        return len(unwanted)


def _content(sha256: str) -> str:
    return f"{CONTENTS}/{sha256[:2]}/{sha256}"
