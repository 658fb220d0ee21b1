"""Names of files and folders: which are somebody's unfinished business, and how the others are shown."""

from __future__ import annotations

import re
import unicodedata

_TEMPORARY = re.compile(r"\.|~\$|~syncthing~|\$recycle\.bin$", re.IGNORECASE)
"""Names of unfinished or foreign things: hidden (also ``._x``, ``.syncthing.x``, rsync's), Office's locks."""
_FOREIGN_FOLDERS = frozenset(
    "@eadir @recycle @tmp #recycle #snapshot ~snapshot __macosx lost+found recycler tmp.drivedownload "
    "tmp.driveupload".split()
) | {"system volume information"}
"""Folders of file servers, archivers and sync clients: thumbnails, trashes, snapshots, half downloads."""
_UNFINISHED_FOLDERS = (".crdownload", ".download", ".part", ".partial")
"""Some browsers keep a download, under its final name, in a folder that ends so until it is complete."""
_SHOWN_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_foreign_folder(name: str) -> bool:
    """Whether a folder of this name is another program's: hidden, a trash, a thumbnail store."""
    folded = name.lower()
    is_unfinished = folded.endswith(_UNFINISHED_FOLDERS) or _TEMPORARY.match(name) is not None
    return is_unfinished or folded in _FOREIGN_FOLDERS


def why_passed_over(name: str) -> str | None:
    """Why a scan would not see a file of this name, as the end of a sentence; None when it would."""
    if not name.lower().endswith(".pdf"):
        return "is not a PDF: its name does not end in .pdf"
    return "is passed over: names like this are for unfinished files" if _TEMPORARY.match(name) else None


def safe_name(parts: tuple[str, ...]) -> str:
    """A path that can be stored and shown: undecodable bytes, controls and invisible marks escaped.

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
