"""Collects what a scan finds, and what an admin should know about single files.

Names of files and folders decide which are somebody's unfinished business; the others are shown escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ingestion.sources.base import FileStat, Scan, ScannedFile

# Names of unfinished or foreign things: hidden (also ``._x``, ``.syncthing.x``, rsync's), Office's locks.
_TEMPORARY = re.compile(r"\.|~\$|~syncthing~|\$recycle\.bin$", re.IGNORECASE)
# Folders of file servers, archivers and sync clients: thumbnails, trashes, snapshots, half downloads.
_FOREIGN_FOLDERS = frozenset(
    "@eadir @recycle @tmp #recycle #snapshot ~snapshot __macosx lost+found recycler tmp.drivedownload "
    "tmp.driveupload".split()
) | {"system volume information"}
# Some browsers keep a download, under its final name, in a folder that ends so until it is complete.
_UNFINISHED_FOLDERS = (".crdownload", ".download", ".part", ".partial")
_UNFINISHED_FILES = (*_UNFINISHED_FOLDERS, ".filepart", ".tmp", ".temp", ".lock", "~", "#")
_SYSTEM_FILES = frozenset(("thumbs.db", "desktop.ini", "icon\r"))
# Of one place: a folder of photographs is recognised by some of them.
MAX_STRANGERS = 100
_SHOWN_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

EXAMPLES = 3


def is_foreign_folder(name: str) -> bool:
    """True if a folder of this name is another program's: hidden, a trash, a thumbnail store."""
    folded = name.lower()
    is_unfinished = folded.endswith(_UNFINISHED_FOLDERS) or _TEMPORARY.match(name) is not None
    return is_unfinished or folded in _FOREIGN_FOLDERS


def why_passed_over(name: str) -> str | None:
    """Why a scan would not see a file of this name, as the end of a sentence; None when it would."""
    if not name.lower().endswith(".pdf"):
        return "is not a PDF: its name does not end in .pdf"
    return "is passed over: names like this are for unfinished files" if _TEMPORARY.match(name) else None


def why_stranger(name: str, *, is_link: bool = False) -> str | None:
    """Why a file that somebody dropped is not read, as a sentence; None when it is or is no person's file."""
    folded = name.lower()
    if _TEMPORARY.match(name) or folded.endswith(_UNFINISHED_FILES) or folded in _SYSTEM_FILES:
        return None
    if is_link:
        return "Links are not followed: put the file itself here."
    return None if folded.endswith(".pdf") else "Only PDFs are read: save it as a PDF."


def safe_name(parts: tuple[str, ...]) -> str:
    """Return a path that can be stored and shown: undecodable bytes, controls and invisible marks escaped.

    Backslashes are escaped too, so that two different names never come out the same.
    """
    name = "/".join(parts)
    if name.isprintable() and "\\" not in name:
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


class ScanReport:
    """The files of one scan while it runs."""

    def __init__(self) -> None:
        self._files: dict[str, ScannedFile] = {}
        self._problems: dict[str, list[str]] = {}
        self._is_gone = False
        self._linked: list[str] = []
        self._unusable: list[str] = []
        self._strangers: dict[str, str] = {}

    def add(self, parts: tuple[str, ...], file_stat: FileStat, links: int = 1) -> None:
        """A PDF, and how many names of the file system lead to it."""
        name = safe_name(parts)
        self._files[name] = ScannedFile(name, parts, file_stat)
        if links > 1:
            self._linked.append(name)

    def add_unusable(self, parts: tuple[str, ...]) -> None:
        """A name that leads nowhere safe, so nobody reads the file."""
        self._unusable.append(safe_name(parts))

    def add_stranger(self, parts: tuple[str, ...], *, is_link: bool = False) -> None:
        """A file that is no PDF, or only a link to one."""
        if (sentence := why_stranger(parts[-1], is_link=is_link)) is not None:
            self._strangers[safe_name(parts)] = sentence

    def add_problem(self, sentence: str, parts: tuple[str, ...] = ()) -> None:
        """Something that could not be seen, and where; the first sentence is shown, with all its places."""
        places = self._problems.setdefault(sentence, [])
        if parts:
            places.append(safe_name(parts))

    def add_absence(self, sentence: str) -> None:
        """The folder itself is not there."""
        self.add_problem(sentence)
        self._is_gone = True

    def scan(self) -> Scan:
        """Return all of it."""
        problem, places = next(iter(self._problems.items()), (None, []))
        where = _examples(places) if places else ""
        strangers = dict(sorted(self._strangers.items())[:MAX_STRANGERS])
        return Scan(self._files, problem, tuple(self._remarks()), where, self._is_gone, strangers)

    def _remarks(self) -> Iterator[str]:
        if self._linked:
            yield (
                f"{_examples(self._linked)}: other names outside or inside the folder lead to the same "
                "bytes (hard links); whoever writes there changes this document too."
            )
        for twins in _twins(self._files):
            yield f"{_examples(twins)}: these names look the same and are kept as separate documents."
        if self._unusable:
            yield f"{_examples(self._unusable)}: passed over, because no path can have such a name."


def _twins(names: Iterable[str]) -> Iterator[list[str]]:
    """Names that differ only in how their letters are composed, or in case."""
    folded = {
        name: name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
        for name in names
    }
    if len(set(folded.values())) == len(folded):
        return
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, fold in folded.items():
        alike[fold].append(name)
    yield from (sorted(twins) for twins in alike.values() if len(twins) > 1)


def _examples(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in sorted(names)[:EXAMPLES])
    return shown if len(names) <= EXAMPLES else f"{shown} and {len(names) - EXAMPLES} more"
