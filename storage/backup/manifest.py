"""The manifest of a backup: what it holds, by name and hash, of which release, and from when."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from storage.errors import DamagedBackup

FORMAT = 1


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """A file of the home, or the dump of a table."""

    sha256: str
    size: int
    # Nanoseconds, as the home's disk said: one that did not change is not read again.
    modified: int = 0


@dataclass(slots=True)
class BackupManifest:
    """A whole backup."""

    # Of the tables.
    revision: str
    # When SQL was read, in ISO 8601.
    made_at: str
    # Where the home was: folders in it are looked for in the new one.
    home: str
    # The home's own id: another one's backup does not take this one's place.
    home_id: str
    # In the order in which they can be filled.
    tables: dict[str, BackupEntry] = field(default_factory=dict)
    # Table -> the highest id it ever gave: none is given again.
    last_ids: dict[str, int] = field(default_factory=dict)
    # By path in the home.
    files: dict[str, BackupEntry] = field(default_factory=dict)
    # Path -> why: a file of the home that was damaged or gone.
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def contents(self) -> set[str]:
        """Every content that it names."""
        return {entry.sha256 for entry in (*self.tables.values(), *self.files.values())}

    @property
    def digest(self) -> str:
        """SHA-256 over all that it names, and so over the whole backup; in hexadecimal digits."""
        return _hash(self._values())

    def to_json(self) -> bytes:
        """As it is kept: with a hash over itself."""
        return json.dumps(self._values() | {"sha256": self.digest}, indent=1).encode()

    def _values(self) -> dict[str, Any]:
        return asdict(self) | {"format": FORMAT}

    @classmethod
    def of_json(cls, data: bytes) -> BackupManifest:
        """What ``to_json`` wrote.

        Raises:
            DamagedBackup: a byte of it has changed, or a newer release wrote it in another form.
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
            raise DamagedBackup("the backup has the form of a newer release: restore it with that one")
        del values["format"]
        for name in ("tables", "files"):
            values[name] = {key: BackupEntry(**entry) for key, entry in values[name].items()}
        return cls(**values)


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
