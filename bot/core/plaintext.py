"""Mends text that came in, and makes text of documents and models inert before a renderer escapes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

_JOINER = "\u2060"
_BROKEN = re.compile("[\0\ud800-\udfff]")
_MARK = re.compile(r" ?\[\d{1,3}\]")
_LIKE_A_MARK = re.compile(r"\[(\s*\d{1,3}\s*)\]")
_HIDDEN = {"Cc", "Cf", "Cs"}
_KEPT = {"\n", "\t", "\u200c", "\u200d"}  # the last two: Persian, Indic scripts and emoji need them

# Where a chat client would see a URL: at "://", after "www.", and at a dot inside a host name. File names
# of documents keep their dots as they are: none of these endings is a top-level domain.
_LINKS = re.compile(
    r"(?<=:)(?=//)|(?<=www\.)(?=\w)|(?<=[^\W_]\.)(?!(?:pdf|docx?|xlsx?|pptx?|txt|csv|png|jpe?g)\b)(?=[^\W\d_]{2})",
    re.IGNORECASE,
)

# Control characters, which no tamed text holds, around what a renderer sets in bold.
BOLD_BEGINS, BOLD_ENDS = "\x02", "\x03"

_NAME = re.compile(r"\w[^\s<>]*[\w/]")

# Follows the first sentences of an answer while the others are written: in any language.
MORE_TO_COME = "…"


def mend(text: str) -> str:
    """The same text with U+FFFD for NUL and half surrogate pairs, which JSON spells and no database keeps."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", text)


def tame(text: str) -> str:
    """Return the same text without invisible or reordering characters."""
    return "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in _HIDDEN)


def find_links(text: str) -> Iterator[re.Match[str]]:
    """Yield the URLs, host and file names of which a chat client would make a link."""
    return (match for match in _NAME.finditer(text) if _LINKS.search(match[0]))


def unlink(text: str) -> str:
    """Return the same text, with a word joiner, which nobody sees, where a client would recognise a URL."""
    return _LINKS.sub(_JOINER, text)


def embolden(text: str, headings: Iterable[str]) -> str:
    """Put BOLD_BEGINS and BOLD_ENDS around the lines of a tamed text that are one of these headings."""
    bold = set(map(tame, headings))
    lines = text.split("\n")
    return "\n".join(f"{BOLD_BEGINS}{one}{BOLD_ENDS}" if one in bold else one for one in lines)


def without_marks(text: str) -> str:
    """Return an answer's text without its [n], which stand for nothing before its sources are there."""
    return _MARK.sub("", text)


def inert(text: str) -> str:
    """On one line, without anything that reads like the mark of a source."""
    return _LIKE_A_MARK.sub(r"(\1)", " ".join(text.split()))


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters on one line, with an ellipsis where something is missing."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shorten_middle(text: str, limit: int, end: int | None = None) -> str:
    """Return the same, of what is told from others by its end as by its beginning: a name, a file.

    ``end``: so many characters of it stay; None: a third.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    end = (limit - 1) // 3 if end is None else end
    return f"{line[: limit - 1 - end].rstrip()}…{line[len(line) - end :].lstrip()}"
