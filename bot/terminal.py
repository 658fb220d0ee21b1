"""Escapes terminal output: untrusted text cannot move the cursor, hide a line or ring the bell.

Names, questions and subjects come from chats and documents. All output is escaped in one place, JSON
included; our control sequences bypass it.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

ERASE_LINE = "\r\x1b[K"
# C0 except tab and line feed, DEL, C1, and bidirectional formatting characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    r"""Return the text with control characters escaped as in JSON: ``\u001b``."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Return untrusted text on one line: a line feed becomes ``\u000a``, too."""
    return text.replace("\n", "\\u000a")


class EscapedStream(io.TextIOBase):
    """Standard output or error, with control characters escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the wrapped stream."""
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        """Write untrusted text, escaped."""
        self._stream.write(escape(text))
        return len(text)

    def control(self, sequence: str) -> None:
        """Write a control sequence, unescaped."""
        self._stream.write(sequence)

    def flush(self) -> None:
        """Flush the wrapped stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """True if the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._stream.fileno()


def escape_output() -> None:
    """Escape standard output and error from now on, in UTF-8 whatever the locale."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
            setattr(sys, name, EscapedStream(stream))


def control(sequence: str) -> None:
    """Write a control sequence to standard error, unescaped."""
    if isinstance(sys.stderr, EscapedStream):
        sys.stderr.control(sequence)
    else:
        sys.stderr.write(sequence)
