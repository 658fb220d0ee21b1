"""Plain text: repairs incoming text, and neutralises text of documents and models before rendering."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

_JOINER = "\u2060"
_BROKEN = re.compile("[\0\ud800-\udfff]")
_MARK = re.compile(r" ?\[\d{1,3}\]")
_LIKE_A_MARK = re.compile(r"\[(\s*\d{1,3}\s*)\]")
_HIDDEN = {"Cc", "Cf", "Cs"}
_KEPT = {"\n", "\t", "\u200c", "\u200d"}  # ZWNJ and ZWJ: Persian, Indic scripts and emoji need them

# Where a chat client would recognise a URL: at "://", after "www.", and at a dot inside a host name. File
# names of documents keep their dots: none of these extensions is a top-level domain.
_LINKS = re.compile(
    r"(?<=:)(?=//)|(?<=www\.)(?=\w)|(?<=[^\W_]\.)(?!(?:pdf|docx?|xlsx?|pptx?|txt|csv|png|jpe?g)\b)(?=[^\W\d_]{2})",
    re.IGNORECASE,
)

# Markers around text that a renderer sets in bold: control characters, which no input keeps.
BOLD_BEGINS, BOLD_ENDS = "\x02", "\x03"

_NAME = re.compile(r"\w[^\s<>]*[\w/]")

# Ends a streamed answer that is not complete yet; the same in every language.
MORE_TO_COME = "…"


def replace_invalid_chars(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD: JSON can spell them, but no database can store them."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", text)


def strip_hidden_chars(text: str) -> str:
    """Remove control, format and surrogate characters: invisible ones and those that reorder text."""
    return "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in _HIDDEN)


def find_links(text: str) -> Iterator[re.Match[str]]:
    """Yield the URLs, host names and file names that a chat client would turn into links."""
    return (match for match in _NAME.finditer(text) if _LINKS.search(match[0]))


def break_links(text: str) -> str:
    """Insert an invisible word joiner (U+2060) wherever a client would recognise a URL."""
    return _LINKS.sub(_JOINER, text)


def embolden(text: str, headings: Iterable[str]) -> str:
    """Put BOLD_BEGINS and BOLD_ENDS around those lines of a cleaned text that are ``headings``."""
    bold = set(map(strip_hidden_chars, headings))
    lines = text.split("\n")
    return "\n".join(f"{BOLD_BEGINS}{one}{BOLD_ENDS}" if one in bold else one for one in lines)


def without_markers(text: str) -> str:
    """Remove the [n] markers, which refer to nothing until the sources are shown."""
    return _MARK.sub("", text)


def escape_markers(text: str) -> str:
    """Put a text on one line, and disarm whatever looks like an [n] marker in it."""
    return _LIKE_A_MARK.sub(r"(\1)", " ".join(text.split()))


def shorten(text: str, limit: int) -> str:
    """Truncate a text to ``limit`` characters on one line, with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shorten_middle(text: str, limit: int, end: int | None = None) -> str:
    """Truncate a text in the middle: names and files may differ at the end only.

    ``end``: number of characters preserved at the end; None: a third of ``limit``.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    end = (limit - 1) // 3 if end is None else end
    return f"{line[: limit - 1 - end].rstrip()}…{line[len(line) - end :].lstrip()}"
