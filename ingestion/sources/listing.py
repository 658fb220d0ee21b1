"""Looks at a folder of this machine: one complete scan is the truth about it; nothing is opened."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from ingestion.sources.names import is_foreign_folder, safe_name, why_passed_over
from ingestion.sources.port import Look, Scan, SeenFile


def scan(root: Path) -> Scan:
    """See every PDF below ``root``; symlinks, pipes, devices and temporary files are passed over.

    Blocks: call it in a thread. Never raises for what it finds; a folder that cannot be listed
    makes the scan incomplete.
    """
    files: dict[str, SeenFile] = {}
    folders: list[tuple[str, ...]] = [()]
    problem = None
    while folders:
        try:
            folders += _list(root, folders.pop(), files)
        except FileNotFoundError:
            problem = problem or "The folder, or a part of it, is missing: is its disk or share connected?"
        except OSError as error:
            problem = problem or f"The folder, or a part of it, cannot be listed: {error.strerror}."
    return Scan(files, problem)


def scan_file(root: Path, name: str) -> Scan:
    """See one file that lies directly in ``root``, without a look at what lies beside it; as ``scan``."""
    files: dict[str, SeenFile] = {}
    try:
        _see(root.joinpath(name).lstat(), (name,), files)
    except FileNotFoundError:
        return Scan()
    except OSError as error:
        return Scan(problem=f"The file cannot be looked at: {error.strerror}.")
    return Scan(files)


def first_level(root: Path) -> tuple[list[str], list[str]]:
    """(folders, loose PDFs) that lie directly in ``root``, sorted, by their names.

    Raises:
        OSError: the root cannot be listed.
    """
    with os.scandir(root) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    folders = [entry.name for entry in listed if _is_folder(entry)]
    return folders, [safe_name((entry.name,)) for entry in listed if _is_pdf(entry)]


def _list(root: Path, parts: tuple[str, ...], files: dict[str, SeenFile]) -> list[tuple[str, ...]]:
    """Put one folder's PDFs into ``files`` and return the folders in it."""
    deeper = []
    with os.scandir(root.joinpath(*parts)) as entries:
        for entry in entries:
            inside = (*parts, entry.name)
            if _is_folder(entry):
                deeper.append(inside)
            elif _is_pdf(entry):
                with suppress(FileNotFoundError):
                    _see(entry.stat(follow_symlinks=False), inside, files)
    return deeper


def _see(status: os.stat_result, parts: tuple[str, ...], files: dict[str, SeenFile]) -> None:
    if S_ISREG(status.st_mode):
        name = safe_name(parts)
        files[name] = SeenFile(name, parts, Look.of(status))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return not is_foreign_folder(entry.name) and entry.is_dir(follow_symlinks=False)


def _is_pdf(entry: os.DirEntry[str]) -> bool:
    return why_passed_over(entry.name) is None and entry.is_file(follow_symlinks=False)
