"""Escape what a command writes: the words of others never move a cursor, hide a line or ring a bell.

Names, questions and subjects come from chats and documents. One place escapes all of them, in JSON too; our
own control sequences go past it.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

ERASE_LINE = "\r\x1b[K"
# C0 but for tab and line feed, DEL, C1, and the marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    r"""Return the text with control characters as JSON spells them: ``\u001b``."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Return the words of others for a row of their own: a line feed is spelled ``\u000a``, too."""
    return text.replace("\n", "\\u000a")


class EscapedStream(io.TextIOBase):
    """Standard output or error, escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return the encoding of what is written."""
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        """Write the words of anybody."""
        self._stream.write(escape(text))
        return len(text)

    def control(self, sequence: str) -> None:
        """Write one of our own sequences."""
        self._stream.write(sequence)

    def flush(self) -> None:
        """Hand on what was written."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person may be reading."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._stream.fileno()


def escape_output() -> None:
    """Have standard output and error escaped from now on, in UTF-8 whatever the locale says."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
            setattr(sys, name, EscapedStream(stream))


def control(sequence: str) -> None:
    """Write one of our own sequences to standard error."""
    if isinstance(sys.stderr, EscapedStream):
        sys.stderr.control(sequence)
    else:
        sys.stderr.write(sequence)
