"""Scan report: collects the files of a scan, and notices about single files for an admin.

Names decide which files and folders are temporary or foreign; other names are escaped for display.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ingestion.sources.base import FileStat, Scan, ScannedFile
from storage.readers.registry import READERS

# Temporary or foreign names: hidden files (also ``._x``, ``.syncthing.x``, rsync's), Office's lock files.
_TEMPORARY = re.compile(r"\.|~\$|~syncthing~|\$recycle\.bin$", re.IGNORECASE)
# Folders of file servers, archivers and sync clients: thumbnails, trash, snapshots, partial downloads.
_FOREIGN_FOLDERS = frozenset(
    "@eadir @recycle @tmp #recycle #snapshot ~snapshot __macosx lost+found recycler tmp.drivedownload "
    "tmp.driveupload".split()
) | {"system volume information"}
# Some browsers keep a partial download, under its final name, in a folder with such a suffix.
_UNFINISHED_FOLDERS = (".crdownload", ".download", ".part", ".partial")
_UNFINISHED_FILES = (*_UNFINISHED_FOLDERS, ".filepart", ".tmp", ".temp", ".lock", "~", "#")
_SYSTEM_FILES = frozenset(("thumbs.db", "desktop.ini", "icon\r"))
# Per location: some examples are enough to recognise, say, a folder of photos.
MAX_UNSUPPORTED_FILES = 100
_SHOWN_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

EXAMPLES = 3


def is_foreign_folder(name: str) -> bool:
    """True if a folder of this name belongs to another program: hidden, trash, thumbnails."""
    folded = name.lower()
    is_unfinished = folded.endswith(_UNFINISHED_FOLDERS) or _TEMPORARY.match(name) is not None
    return is_unfinished or folded in _FOREIGN_FOLDERS


def skip_reason(name: str) -> str | None:
    """Return why a scan skips a file of this name, as the end of a sentence; None if it does not."""
    if READERS.type_of(name) is None:
        kinds = " or ".join(one.singular for one in READERS.media_types)
        endings = " or ".join(suffix for one in READERS.media_types for suffix in one.suffixes)
        return f"is not {kinds}: its name does not end in {endings}"
    return "is skipped: names like this are for unfinished files" if _TEMPORARY.match(name) else None


def unsupported_reason(name: str, *, is_link: bool = False) -> str | None:
    """Return why a dropped file is not read, as a sentence; None for readable and programs' own files."""
    folded = name.lower()
    if _TEMPORARY.match(name) or folded.endswith(_UNFINISHED_FILES) or folded in _SYSTEM_FILES:
        return None
    if is_link:
        return "Links are not followed: put the file itself here."
    if READERS.type_of(name):
        return None
    kinds = " and ".join(one.plural for one in READERS.media_types)
    return f"Only {kinds} are read: save it as {READERS.media_types[0].singular}."


def safe_name(parts: tuple[str, ...]) -> str:
    """Return a path that is safe to store and show: undecodable bytes and invisible characters are escaped.

    Backslashes are escaped, too, so that different names never become equal.
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
    """Report of a running scan."""

    def __init__(self) -> None:
        self._files: dict[str, ScannedFile] = {}
        self._problems: dict[str, list[str]] = {}
        self._is_gone = False
        self._linked: list[str] = []
        self._unusable: list[str] = []
        self._unsupported_files: dict[str, str] = {}

    def add(self, parts: tuple[str, ...], file_stat: FileStat, links: int = 1) -> None:
        """Add a readable file; ``links``: its number of hard links."""
        name = safe_name(parts)
        self._files[name] = ScannedFile(name, parts, file_stat)
        if links > 1:
            self._linked.append(name)

    def add_unusable(self, parts: tuple[str, ...]) -> None:
        """Add a file that is skipped because its name is not a safe path."""
        self._unusable.append(safe_name(parts))

    def add_unsupported(self, parts: tuple[str, ...], *, is_link: bool = False) -> None:
        """Add a file of an unsupported type, or a link."""
        if (sentence := unsupported_reason(parts[-1], is_link=is_link)) is not None:
            self._unsupported_files[safe_name(parts)] = sentence

    def add_problem(self, sentence: str, parts: tuple[str, ...] = ()) -> None:
        """Add a problem and its path; only the first problem is shown, with all its paths."""
        places = self._problems.setdefault(sentence, [])
        if parts:
            places.append(safe_name(parts))

    def add_absence(self, sentence: str) -> None:
        """Record that the folder itself is missing."""
        self.add_problem(sentence)
        self._is_gone = True

    def scan(self) -> Scan:
        """Return the finished scan."""
        problem, places = next(iter(self._problems.items()), (None, []))
        where = _examples(places) if places else ""
        unsupported_files = dict(sorted(self._unsupported_files.items())[:MAX_UNSUPPORTED_FILES])
        return Scan(self._files, problem, tuple(self._remarks()), where, self._is_gone, unsupported_files)

    def _remarks(self) -> Iterator[str]:
        if self._linked:
            yield (
                f"{_examples(self._linked)}: other names outside or inside the folder lead to the same "
                "bytes (hard links); whoever writes there changes this document too."
            )
        for twins in _twins(self._files):
            yield f"{_examples(twins)}: these names look the same and are kept as separate documents."
        if self._unusable:
            yield f"{_examples(self._unusable)}: skipped, because the name is not a valid path."


def _twins(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names that differ only in Unicode normalisation or case."""
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
