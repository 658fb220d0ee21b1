"""Source in the local file system, including mounted network shares.

A complete scan is authoritative; a scan opens no file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import TypeVar

from ingestion.errors import FileUnreadable, NotAFile
from ingestion.sources.base import FileStat, Parts, Scan, ScannedFile
from ingestion.sources.safe_copy import UnreadableFiles, copy, open_beneath
from ingestion.sources.scan_report import (
    ScanReport,
    is_foreign_folder,
    safe_name,
    skip_reason,
    unsupported_reason,
)
from ingestion.sources.watchdog import MOUNT_SECONDS, Heartbeat, ShareTimeout, Watchdog, no_heartbeat
from storage.errors import BlobsUnavailable
from storage.mounts import may_hang

_LOOSE = "It is not in a channel's folder: move it into one."
_GONE = "The folder is missing: is its disk or share connected?"
_MISSING = "A part of the folder is missing: is its disk or share connected?"
_UNMOUNTED = "A disk or share that was connected inside the folder is gone: connect it again."

T = TypeVar("T")
_LINK = (
    "The folder is a link now: put the folder itself there, or name the place it leads to in folders.toml."
)


def scan(root: Path, devices: dict[Parts, int], heartbeat: Heartbeat) -> Scan:
    """Find every readable file below ``root``; symlinks, pipes, devices and temporary files are skipped.

    Blocks: call it in a thread. Never raises for what it finds; a folder that cannot be listed makes the scan
    incomplete, and the others are still scanned.

    Args:
        devices: folder -> its device at earlier scans, updated here: a disk mounted in the folder that is
            disconnected leaves an empty folder, or none.
        heartbeat: called for every folder.
    """
    report = ScanReport()
    folders: list[Parts] = [()]
    found: dict[Parts, int] = {}
    while folders:
        parts = folders.pop()
        try:
            found[parts] = root.joinpath(*parts).stat(follow_symlinks=not parts).st_dev
            folders += _list(root, parts, report)
        except FileNotFoundError:
            report.add_problem(_MISSING, parts) if parts else report.add_absence(_GONE)
        except OSError as error:
            what = "A part of the folder" if parts else "The folder"
            report.add_problem(f"{what} cannot be listed: {error.strerror}.", parts)
        heartbeat()
    unmounted = _unmounted(devices, found)
    for parts in unmounted:
        report.add_problem(_UNMOUNTED, parts)
    if not unmounted:
        devices.update(found)
    return report.scan()


def scan_file(root: Path, name: str) -> Scan:
    """Find one file directly in ``root``, without listing the folder; like ``scan``."""
    report = ScanReport()
    try:
        _see(root.joinpath(name).lstat(), (name,), report)
    except FileNotFoundError:
        return Scan()
    except OSError as error:
        report.add_problem(f"The file cannot be read: {error.strerror}.")
    return report.scan()


def first_level(root: Path) -> tuple[list[str], list[str]]:
    """Return the names of (folders, loose documents) directly in ``root``, sorted.

    Raises:
        OSError: the root cannot be listed.
    """
    with os.scandir(root) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    folders = [entry.name for entry in listed if _is_folder(entry)]
    return folders, [safe_name((entry.name,)) for entry in listed if _is_document(entry)]


def loose_files(root: Path) -> dict[str, str]:
    """Return file -> why it is not read, for files in an inbox but outside of all channels' folders.

    Raises:
        OSError: the root cannot be listed.
    """
    with os.scandir(root) as entries:
        files = [one.name for one in entries if one.is_symlink() or one.is_file(follow_symlinks=False)]
    named = {name: _LOOSE if skip_reason(name) is None else unsupported_reason(name) for name in files}
    return {safe_name((name,)): reason for name, reason in sorted(named.items()) if reason is not None}


def _list(root: Path, parts: Parts, report: ScanReport) -> list[Parts]:
    """Add a folder's documents to ``report``; return its subfolders."""
    deeper = []
    with os.scandir(root.joinpath(*parts)) as entries:
        for entry in entries:
            inside = (*parts, entry.name)
            if _is_folder(entry):
                deeper.append(inside)
            elif _is_document(entry):
                try:  # an error on one file must not hide the others
                    _see(entry.stat(follow_symlinks=False), inside, report)
                except FileNotFoundError:
                    continue  # deleted between two calls
                except OSError as error:
                    sentence = f"A file of the folder cannot be read: {error.strerror}."
                    report.add_problem(sentence, inside)
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                report.add_unsupported(inside, is_link=entry.is_symlink())
    return deeper


def _see(status: os.stat_result, parts: Parts, report: ScanReport) -> None:
    if S_ISREG(status.st_mode):
        report.add(parts, FileStat.of(status), links=status.st_nlink)


def _unmounted(before: dict[Parts, int], now: dict[Parts, int]) -> list[Parts]:
    """Return the folders that were mount points and no longer are."""
    return [
        parts
        for parts, device in before.items()
        if parts
        and device != before.get(parts[:-1], device)
        and now.get(parts) in (None, now.get(parts[:-1]))
    ]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return not is_foreign_folder(entry.name) and entry.is_dir(follow_symlinks=False)


def _is_document(entry: os.DirEntry[str]) -> bool:
    return skip_reason(entry.name) is None and entry.is_file(follow_symlinks=False)


class LocalSource:
    """``Source`` in the local file system; calls to a share may hang, and are abandoned after a timeout."""

    def __init__(self, location: str, seconds: float = 20.0, *, follows_link: bool = True) -> None:
        """Store the absolute path of the folder, which need not exist.

        Args:
            seconds: inactivity timeout for a network share; local disks have none.
            follows_link: whether the folder itself may be a symlink; those inside are never followed.
        """
        self.location = location
        self._root = Path(location)
        self._follows_link = follows_link
        self._kernel = Watchdog(MOUNT_SECONDS)
        self.is_remote = self._is_share()
        self._watchdog = Watchdog(seconds)
        self._unreadable = UnreadableFiles()
        self._devices: dict[tuple[str, ...], int] = {}

    def scan(self) -> Scan:
        """Find every readable file; a share may have been mounted since the last scan."""
        self.is_remote = self._is_share()
        try:
            return self._remembered(self._call(self._scan))
        except ShareTimeout as error:
            return Scan(problem=str(error))

    def scan_file(self, name: str) -> Scan:
        """Find one file directly in the folder."""
        try:
            return self._remembered(self._call(lambda _heartbeat: scan_file(self._root, name)))
        except ShareTimeout as error:
            return Scan(problem=str(error))

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """Return the last bytes of a file."""
        try:
            return self._call(lambda _heartbeat: _tail(*self._way_to(seen), size))
        except (NotAFile, ShareTimeout, OSError):
            return b""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it; return the sha256 in hex."""
        bare = replace(seen, stat=seen.stat._replace(tag=""))
        try:
            sha256 = self._call(partial(copy, *self._way_to(bare), target, max_bytes))
        except FileUnreadable:
            self._unreadable.add(seen.parts)
            raise
        except ShareTimeout as error:
            raise BlobsUnavailable(str(error)) from error
        self._unreadable.remove(seen.parts)
        return sha256

    def close(self) -> None:
        """Do nothing: no connection is kept open."""

    def _is_share(self) -> bool:
        """True if the folder is on a share; a timeout means a share that hangs."""
        try:
            return self._kernel.call(lambda _heartbeat: may_hang(self._root))
        except ShareTimeout:
            return True

    def _scan(self, heartbeat: Heartbeat) -> Scan:
        if not self._follows_link and self._root.is_symlink():
            return Scan(problem=_LINK)
        return scan(self._root, self._devices, heartbeat)

    def _remembered(self, scan: Scan) -> Scan:
        """Return the scan with unreadable files marked as changed once per retry interval."""
        for file, seen in scan.files.items():
            if (file_stat := self._unreadable.stat_to_remember(seen.parts, seen.stat)) != seen.stat:
                scan.files[file] = replace(seen, stat=file_stat)
        return scan

    def _way_to(self, seen: ScannedFile) -> tuple[Path, ScannedFile]:
        """Return (start folder, file below it); no link is followed below the start folder."""
        if self._follows_link:
            return self._root, seen
        return self._root.parent, replace(seen, parts=(self._root.name, *seen.parts))

    def _call(self, work: Callable[[Heartbeat], T]) -> T:
        return self._watchdog.call(work) if self.is_remote else work(no_heartbeat)


def _tail(root: Path, seen: ScannedFile, size: int) -> bytes:
    descriptor = open_beneath(root, seen.parts)
    try:
        return os.pread(descriptor, size, max(0, seen.stat.size - size))
    finally:
        os.close(descriptor)
