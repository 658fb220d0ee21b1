"""Looks at a folder: one complete scan is the truth about which PDFs lie in it; nothing is opened."""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

_TEMPORARY = re.compile(r"\.|~\$|~syncthing~|\$recycle\.bin$", re.IGNORECASE)
"""Names of unfinished or foreign things: hidden (also ``._x``, ``.syncthing.x``, rsync's), Office's locks."""
_FOREIGN_FOLDERS = frozenset({"@eadir", "__macosx", "lost+found", "system volume information"})
_SHOWN_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Look(NamedTuple):
    """What a file looks like from outside; two equal looks mean the same bytes."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Look:
        """The look in a file's status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A PDF as a scan saw it."""

    file: str
    """Path inside the folder with ``/``, safe to store and show; no two files share one."""
    parts: tuple[str, ...]
    """The same path as the file system spells it."""
    look: Look


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything one scan saw."""

    files: dict[str, SeenFile] = field(default_factory=dict)
    problem: str | None = None
    """Why the scan is not complete, as a sentence; None when it is."""


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


def why_passed_over(name: str) -> str | None:
    """Why a scan would not see a file of this name, as the end of a sentence; None when it would."""
    if not name.lower().endswith(".pdf"):
        return "is not a PDF: its name does not end in .pdf"
    return "is passed over: names like this are for unfinished files" if _TEMPORARY.match(name) else None


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
    is_ours = not _TEMPORARY.match(entry.name) and entry.name.lower() not in _FOREIGN_FOLDERS
    return is_ours and entry.is_dir(follow_symlinks=False)


def _is_pdf(entry: os.DirEntry[str]) -> bool:
    return why_passed_over(entry.name) is None and entry.is_file(follow_symlinks=False)


def safe_name(parts: tuple[str, ...]) -> str:
    """A path that can be stored and shown: undecodable bytes, controls and invisible marks escaped.

    Backslashes are escaped too, so that two different names never come out the same.
    """
    name = "/".join(parts)
    if not any(letter == "\\" or unicodedata.category(letter) in _SHOWN_ESCAPED for letter in name):
        return name
    return "".join(_escape(letter) for letter in name)


def _escape(letter: str) -> str:
    if letter == "\\":
        return "\\\\"
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if unicodedata.category(letter) in _SHOWN_ESCAPED:
        return f"\\u{{{ord(letter):x}}}"
    return letter
