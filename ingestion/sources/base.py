"""Interface of a watched location: a complete scan, the end of a file, a copy with its hash.

Code that watches folders uses ``Source`` only; ``open_source`` creates one from a location.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

# Path below the folder, as a tuple of names.
Parts = tuple[str, ...]


class FileStat(NamedTuple):
    """File metadata; equal values mean equal content."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    # Content tag of the store, such as an ETag, if it has one.
    tag: str = ""

    @classmethod
    def of(cls, status: os.stat_result) -> FileStat:
        """Return the metadata in an ``os.stat_result``."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A readable file found by a scan."""

    # Path in the folder with ``/``, safe to store and show; unique in a scan.
    file: str
    # The same path, as the source spells it.
    parts: tuple[str, ...]
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of a scan."""

    files: dict[str, ScannedFile] = field(default_factory=dict)
    # Why the scan is incomplete, as a sentence; None if it is complete.
    problem: str | None = None
    # Notices for an admin about single files, a sentence each; sorted.
    remarks: tuple[str, ...] = ()
    # Paths that the problem is about; for admins only, never logged.
    where: str = ""
    # The location itself is missing: its disk is disconnected, or it was deleted.
    is_gone: bool = False
    # Unsupported file -> why it is not read, as a sentence; bounded.
    unsupported_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem_text(self) -> str | None:
        """Problem with its paths, as shown to an admin."""
        return f"{self.problem} See {self.where}." if self.problem and self.where else self.problem


class Source(Protocol):
    """A watched folder; every method except ``close`` blocks, so call them in a thread."""

    # As in the folder's row: an absolute path, or a URL without credentials.
    location: str
    # True for a network share or a URL, where files settle longer.
    is_remote: bool

    def scan(self) -> Scan:
        """Find every readable file; never raises, as problems are part of the scan."""

    def scan_file(self, name: str) -> Scan:
        """Find one file directly in the folder, or none; like ``scan``."""

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """Return the last ``size`` bytes of a file, or fewer; empty if it cannot be read now."""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it; return the sha256 in hex.

        Raises:
            NotAFile: there is no regular file of this name any more.
            FileChanged: it changed before or during the copy; the target is worthless.
            FileRefused: it is too large, or not readable.
            BlobsUnavailable: the copy could not be written, or the location does not respond.
        """

    def close(self) -> None:
        """Close connections; returns at once, even if the other side hangs."""
