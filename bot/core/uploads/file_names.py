"""A name for a file that somebody uploaded: whatever they call it, it is safe on every file system.

What comes out is one visible name that ends in .pdf and can be said whole in a message: at most 84 characters
and 255 bytes with a number. It is no device of Windows, no hidden and no unfinished file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

SUFFIX = ".pdf"
MEDIA_TYPE = "application/pdf"
UNNAMED = "document"
# Of a name without its number and suffix.
MAX_CHARS, MAX_BYTES = 80, 240
# Controls, marks that turn the direction of writing, halves of surrogate pairs, and what is no letter.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# What Windows takes in no name.
_REFUSED = re.compile(r'[<>:"|?*]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)
# Begins the names of hidden and unfinished files.
_LEADING = " .~$#"


def safe_file_name(name: str) -> str:
    """Return a name for an uploaded file; any text gets one, and what is one already stays as it is."""
    bare = re.split(r"[/\\]", name)[-1]
    visible = "".join(c for c in bare if unicodedata.category(c) not in _INVISIBLE)
    text = " ".join(unicodedata.normalize("NFC", _REFUSED.sub("_", visible)).split())
    stem = text[: -len(SUFFIX)] if text.lower().endswith(SUFFIX) else text
    stem = _cut(stem.lstrip(_LEADING)).rstrip(" .")
    if _DEVICES.match(stem):
        stem = f"_{stem}"
    return f"{stem or UNNAMED}{SUFFIX}"


def free_file_name(name: str, taken: Collection[str]) -> str:
    """Return a safe name that no other file has, also where case or composition of letters do not count.

    The second one is called ``Name (2).pdf``.
    """
    others = {_folded(one) for one in taken}
    stem, number, chosen = name[: -len(SUFFIX)], 1, name
    while _folded(chosen) in others:
        number += 1
        chosen = f"{stem} ({number}){SUFFIX}"
    return chosen


def is_same_name(one: str, other: str) -> bool:
    """True if two names are one where case or composition of letters do not count."""
    return _folded(one) == _folded(other)


def is_named_pdf(name: str, media_type: str) -> bool:
    """True if a file is a PDF by its name, or by what its platform says of it."""
    return name.lower().endswith(SUFFIX) or media_type.partition(";")[0].strip() == MEDIA_TYPE


def _cut(text: str) -> str:
    """So much of a text as a name has room for, in whole letters."""
    return text[:MAX_CHARS].encode()[:MAX_BYTES].decode(errors="ignore")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
