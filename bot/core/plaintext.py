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

# Markers around text that a renderer sets in bold, or as code: control characters, which no input keeps.
BOLD_BEGINS, BOLD_ENDS = "\x02", "\x03"
CODE_BEGINS, CODE_ENDS = "\x04", "\x05"

# Longest text set as code.
MAX_CODE_CHARS = 300
# Number of a step at the beginning of a line.
_STEP = re.compile(r"^([^\w\x02-\x05]{0,3})(\d{1,3}[.)])(?= \S)")
# A line that is a command: after a prompt, or a program's name with an option or a pipe.
_COMMAND = re.compile(
    r"^(\W{0,3}(?:\d{1,3}[.)] )?)"
    r"((?:[$#] \S|[a-z][a-z0-9_.-]* (?=.*(?<!\S)(?:--?[a-zA-Z][\w-]*(?:=\S*)?|\|)(?!\S)))[^`\n]*?)"
    r"([.”“»\"]*(?: ?\[\d{1,3}\])*[.”“»\"]*)"
)
# A file path, or an option of a command.
_PATH = re.compile(
    r"(?<![\w/.:])(?:~?/[\w.@-]+(?:/[\w.@*-]+)+/?|[A-Za-z]:\\[\w.\\@-]+|--[a-z][\w-]+(?:=[\w./:-]+)?)"
)

# Ends where a citation mark, a cell or a label of Markdown does.
_NAME = re.compile(r"\w[^\s<>\[\]|]*[\w/]")

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
    """Mark as bold those lines of a cleaned text that are ``headings``, and the numbers of steps."""
    bold = set(map(strip_hidden_chars, headings))
    lines = [f"{BOLD_BEGINS}{one}{BOLD_ENDS}" if one in bold else _with_code(one) for one in text.split("\n")]
    if sum(1 for one in lines if _STEP.match(one)) > 1:
        lines = [_STEP.sub(rf"\1{BOLD_BEGINS}\2{BOLD_ENDS}", one) for one in lines]
    return "\n".join(lines)


def _with_code(line: str) -> str:
    """Mark what people copy as code: a command, a path, a host."""
    if command := _COMMAND.fullmatch(line):
        before, code, after = command.groups()
        return f"{before}{_code(code)}{after}"
    shown, end = [], 0
    for start, stop in sorted(one.span() for one in (*find_links(line), *_PATH.finditer(line))):
        if start >= end:
            shown += [line[end:start], _code(line[start:stop])]
            end = stop
    return "".join([*shown, line[end:]])


def _code(text: str) -> str:
    is_code = len(text) <= MAX_CODE_CHARS and "`" not in text
    return f"{CODE_BEGINS}{text}{CODE_ENDS}" if is_code else text


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
