"""Looks at a folder of this machine: one complete scan is the truth about it; nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG

from ingestion.sources.findings import ScanReport
from ingestion.sources.names import is_foreign_folder, safe_name, why_passed_over
from ingestion.sources.patience import Heartbeat
from ingestion.sources.port import FileStat, Scan
from ingestion.sources.share import Parts

_GONE = "The folder is missing: is its disk or share connected?"
_MISSING = "A part of the folder is missing: is its disk or share connected?"
_UNMOUNTED = "A disk or share that was connected inside the folder is gone: connect it again."


def scan(root: Path, devices: dict[Parts, int], heartbeat: Heartbeat) -> Scan:
    """See every PDF below ``root``; symlinks, pipes, devices and temporary files are passed over.

    Blocks: call it in a thread. Never raises for what it finds; a folder that cannot be listed
    makes the scan incomplete, and the others are seen all the same.

    Args:
        root: the folder.
        devices: folder -> the device it lay on at the scans before, kept up to date: a disk that is
            connected inside the folder and goes away leaves an empty folder, or none.
        beat: called with every folder.
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
    """See one file that lies directly in ``root``, without a look at what lies beside it; as ``scan``."""
    report = ScanReport()
    try:
        _see(root.joinpath(name).lstat(), (name,), report)
    except FileNotFoundError:
        return Scan()
    except OSError as error:
        report.add_problem(f"The file cannot be looked at: {error.strerror}.")
    return report.scan()


def first_level(root: Path) -> tuple[list[str], list[str]]:
    """(folders, loose PDFs) that lie directly in ``root``, sorted, by their names.

    Raises:
        OSError: the root cannot be listed.
    """
    with os.scandir(root) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    folders = [entry.name for entry in listed if _is_folder(entry)]
    return folders, [safe_name((entry.name,)) for entry in listed if _is_pdf(entry)]


def _list(root: Path, parts: Parts, report: ScanReport) -> list[Parts]:
    """Put one folder's PDFs into ``report`` and return the folders in it."""
    deeper = []
    with os.scandir(root.joinpath(*parts)) as entries:
        for entry in entries:
            inside = (*parts, entry.name)
            if _is_folder(entry):
                deeper.append(inside)
            elif _is_pdf(entry):
                _stat_entry(entry, inside, report)
    return deeper


def _stat_entry(entry: os.DirEntry[str], parts: Parts, report: ScanReport) -> None:
    """One file of a folder; what keeps it from being seen hides nothing beside it."""
    try:
        _see(entry.stat(follow_symlinks=False), parts, report)
    except FileNotFoundError:
        return  # it went between two calls
    except OSError as error:
        report.add_problem(f"A file of the folder cannot be looked at: {error.strerror}.", parts)


def _see(status: os.stat_result, parts: Parts, report: ScanReport) -> None:
    if S_ISREG(status.st_mode):
        report.add(parts, FileStat.of(status), links=status.st_nlink)


def _unmounted(before: dict[Parts, int], now: dict[Parts, int]) -> list[Parts]:
    """The folders that lay on another device than the one above them and no longer do."""
    return [
        parts
        for parts, device in before.items()
        if parts
        and device != before.get(parts[:-1], device)
        and now.get(parts) in (None, now.get(parts[:-1]))
    ]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return not is_foreign_folder(entry.name) and entry.is_dir(follow_symlinks=False)


def _is_pdf(entry: os.DirEntry[str]) -> bool:
    return why_passed_over(entry.name) is None and entry.is_file(follow_symlinks=False)
