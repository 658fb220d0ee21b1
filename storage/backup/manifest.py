"""Manifest of a backup: its content by name and hash, its release and its time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from storage.errors import DamagedBackup

FORMAT = 1


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """File of the home, or dump of a table."""

    sha256: str
    size: int
    # Modification time in nanoseconds, from the home's disk: an unchanged file is not read again.
    modified: int = 0


@dataclass(slots=True)
class BackupManifest:
    """Content of a backup."""

    # Revision of the tables.
    revision: str
    # When SQL was read, in ISO 8601.
    made_at: str
    # Path of the home: folders in it are moved to the new one.
    home: str
    # Id of the home: a backup never overwrites another home's.
    home_id: str
    # In an order in which they can be filled.
    tables: dict[str, BackupEntry] = field(default_factory=dict)
    # Table -> the highest id ever assigned, so that none is reused.
    last_ids: dict[str, int] = field(default_factory=dict)
    # By path in the home.
    files: dict[str, BackupEntry] = field(default_factory=dict)
    # Path -> why a file of the home was left out.
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def contents(self) -> set[str]:
        """Return the hashes of all contents."""
        return {entry.sha256 for entry in (*self.tables.values(), *self.files.values())}

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits of all entries, and so of the whole backup."""
        return _hash(self._values())

    def to_json(self) -> bytes:
        """Serialize, with a hash of the content."""
        return json.dumps(self._values() | {"sha256": self.digest}, indent=1).encode()

    def _values(self) -> dict[str, Any]:
        return asdict(self) | {"format": FORMAT}

    @classmethod
    def of_json(cls, data: bytes) -> BackupManifest:
        """Parse and verify what ``to_json`` wrote.

        Raises:
            DamagedBackup: a byte has changed, or a newer release wrote it in another format.
        """
        try:
            values = json.loads(data)
            kept, form = values.pop("sha256"), values["format"]
            is_whole = kept == _hash(values)
        except (ValueError, LookupError, TypeError, AttributeError):
            form = is_whole = None
        if not is_whole:
            raise DamagedBackup("manifest.json of the backup is damaged")
        if form != FORMAT:
            raise DamagedBackup(
                "the backup's format is newer than this release: restore it with the release that made it"
            )
        del values["format"]
        for name in ("tables", "files"):
            values[name] = {key: BackupEntry(**entry) for key, entry in values[name].items()}
        return cls(**values)


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
