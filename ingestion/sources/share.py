"""What ``RemoteSource`` needs of a protocol: list a folder, look at a file, stream it, name its errors."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ingestion.sources.port import Look

Parts = tuple[str, ...]
"""A path below the folder, name by name."""

MISSING = "The folder, or a part of it, is missing: is the address right, and the disk connected?"
FORBIDDEN = "The folder, or a part of it, may not be read: give our account the right to read it."
SILENT = "The server did not answer in time: is it up, and the way to it?"
UNREACHABLE = "The server cannot be reached, or broke off: is it up, and the address right?"
BUSY = "Somebody else is writing this file."
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM)


class Trouble(Exception):
    """Something did not work; the message is a sentence for an admin, without names or secrets."""


class Missing(Trouble):
    """There is no such file or folder."""


class Forbidden(Trouble):
    """It is there, but we may not read it."""


class Busy(Trouble):
    """Somebody else is at work on the file."""


Meanings = Sequence[tuple[tuple[type[Exception], ...], Callable[[], Trouble]]]
"""Errors of an SDK, and what they mean."""


class Entry(NamedTuple):
    """A file or folder on a share; links, pipes and devices are none."""

    parts: Parts
    look: Look | None
    """None for a folder."""


class Stream(Protocol):
    """Bytes in their order."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Share(Protocol):
    """A folder on another machine, connected; nothing of it ever writes there.

    Every method may raise ``Trouble``, or whatever its SDK raises: ``trouble`` says what that means.
    """

    def list(self, folder: Parts) -> Iterator[Entry]:
        """What lies in a folder; a store without folders lists all files at its root."""

    def look(self, file: Parts) -> Look:
        """One file as ``list`` shows it, asked anew."""

    def open(self, file: Parts, look: Look, start: int) -> AbstractContextManager[Stream]:
        """The bytes of a file that looks like this, from ``start`` on."""

    def trouble(self, error: Exception) -> Trouble:
        """What an error of the methods above means."""

    def close(self) -> None:
        """Let go of the connection."""


def plain_trouble(error: Exception) -> Trouble:
    """What an error means whatever the protocol."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, FileNotFoundError) or number in _MISSING:
        return Missing(MISSING)
    if isinstance(error, PermissionError) or number in _FORBIDDEN:
        return Forbidden(FORBIDDEN)
    if isinstance(error, TimeoutError):
        return Trouble(SILENT)
    if isinstance(error, OSError | EOFError):
        return Trouble(UNREACHABLE)
    return Trouble(f"The server answered in a way we do not understand ({type(error).__name__}).")


def trouble_by_type(error: Exception, table: Meanings) -> Trouble:
    """What an error means by the first row of a protocol's table that fits, else whatever the protocol."""
    return next((make() for kinds, make in table if isinstance(error, kinds)), None) or plain_trouble(error)


def wrong_account(variables: str) -> Trouble:
    """The sentence for credentials that a server does not take."""
    return Trouble(f"The server does not let us in: check {variables} (or FOOTNOTE_SHARE_ACCOUNTS).")
