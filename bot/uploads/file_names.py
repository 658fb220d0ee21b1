"""Sanitizes names of uploaded files, so that they are safe on every file system.

The result is a visible single path component with the suffix of a readable type that fits into a message: at
most 90 characters and 255 bytes with a number. It is not a Windows device name, nor that of a hidden or
temporary file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from storage.readers.registry import READERS

UNNAMED = "document"
# Limits of a name without its number and suffix.
MAX_CHARS, MAX_BYTES = 80, 240
# Unicode categories: control, format (bidi marks), surrogate, private use, unassigned, line separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Characters that Windows does not allow in names.
_REFUSED = re.compile(r'[<>:"|?*]')
# Reserved device names of Windows.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)
# First characters of hidden and temporary files.
_LEADING = " .~$#"


def safe_file_name(name: str, declared: str = "") -> str:
    """Return a safe name for an uploaded file, with a suffix of its ``declared`` media type; idempotent."""
    bare = re.split(r"[/\\]", name)[-1]
    visible = "".join(c for c in bare if unicodedata.category(c) not in _INVISIBLE)
    text = " ".join(unicodedata.normalize("NFC", _REFUSED.sub("_", visible)).split())
    stem, suffix = READERS.split_suffix(text)
    kind = READERS.type_of(text, declared) or READERS.media_types[0]
    stem = _cut(stem.lstrip(_LEADING)).rstrip(" .")
    if _DEVICES.match(stem):
        stem = f"_{stem}"
    return f"{stem or UNNAMED}{suffix or kind.suffixes[0]}"


def free_file_name(name: str, taken: Collection[str]) -> str:
    """Return the name, numbered if taken (``Name (2).pdf``) ignoring case and Unicode normalization."""
    others = {_folded(one) for one in taken}
    (stem, suffix), number, chosen = READERS.split_suffix(name), 1, name
    while _folded(chosen) in others:
        number += 1
        chosen = f"{stem} ({number}){suffix}"
    return chosen


def is_same_name(one: str, other: str) -> bool:
    """True if two names are equal ignoring case and Unicode normalization."""
    return _folded(one) == _folded(other)


def _cut(text: str) -> str:
    """Truncate to MAX_CHARS characters and MAX_BYTES bytes."""
    # errors="ignore" drops a character whose bytes were cut in half.
    return text[:MAX_CHARS].encode()[:MAX_BYTES].decode(errors="ignore")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
