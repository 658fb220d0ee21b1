"""What a watched place offers, wherever it lies: a complete scan, a file's end, a copy with its hash.

Everything that watches folders sees them through ``Source`` alone; ``open_source`` makes one of a
folder's location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

# A path below the folder, name by name.
Parts = tuple[str, ...]


class FileStat(NamedTuple):
    """What the file system says of a file; two equal ones mean the same bytes."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    # What the store itself says about the content (an ETag and the like), where it says anything.
    tag: str = ""

    @classmethod
    def of(cls, status: os.stat_result) -> FileStat:
        """That of an ``os.stat_result``."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A PDF as a scan saw it."""

    # Path inside the folder with ``/``, safe to store and show; no two files share one.
    file: str
    # The same path as the place spells it.
    parts: tuple[str, ...]
    stat: FileStat


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything one scan saw."""

    files: dict[str, ScannedFile] = field(default_factory=dict)
    # Why the scan is not complete, as a sentence; None when it is.
    problem: str | None = None
    # What an admin should know of single files that are there, a sentence each; sorted.
    remarks: tuple[str, ...] = ()
    # The parts of the folder that the problem is about, for admins alone: no log may name them.
    where: str = ""
    # The place itself is not there: its disk is away, or somebody removed it.
    is_gone: bool = False
    # File -> why it is not read, as a sentence: what people dropped that is no PDF; bounded.
    strangers: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem_text(self) -> str | None:
        """The problem as an admin reads it."""
        return f"{self.problem} See {self.where}." if self.problem and self.where else self.problem


class Source(Protocol):
    """A folder somewhere; every method but ``close`` blocks, so call them in a thread."""

    # As the folder's row holds it: an absolute path, or a URL without credentials.
    location: str
    # Whether it lies on a network share or behind a URL, where files rest longer.
    is_remote: bool

    def scan(self) -> Scan:
        """See every PDF in it; never raises for what it finds, a problem is a sentence of the scan."""

    def scan_file(self, name: str) -> Scan:
        """See one file that lies directly in it, or nothing; as ``scan``."""

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """Return the last ``size`` bytes of a file, or fewer; none when it cannot be read now."""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it; returns the sha256 as hex digits.

        Raises:
            NotAFile: there is no such regular file any more.
            FileChanged: it changed before or while it was copied; what was written is worthless.
            FileRefused: it is too large, or may not be read.
            BlobsUnavailable: the copy could not be written, or the place does not answer.
        """

    def close(self) -> None:
        """Let go of connections; returns at once, also when the other side hangs."""
