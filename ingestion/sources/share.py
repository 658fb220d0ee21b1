"""What ``RemoteSource`` needs of a protocol: list a folder, look at a file, stream it, name its errors."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ingestion.sources.port import FileStat

Parts = tuple[str, ...]
"""A path below the folder, name by name."""

MISSING = "The folder, or a part of it, is missing: is the address right, and the disk connected?"
FORBIDDEN = "The folder, or a part of it, may not be read: give our account the right to read it."
SILENT = "The server did not answer in time: is it up, and the way to it?"
UNREACHABLE = "The server cannot be reached, or broke off: is it up, and the address right?"
BUSY = "Somebody else is writing this file."
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM)


class ShareError(Exception):
    """Something did not work; the message is a sentence for an admin, without names or secrets."""


class ShareFileMissing(ShareError):
    """There is no such file or folder."""


class ShareForbidden(ShareError):
    """It is there, but we may not read it."""


class ShareFileBusy(ShareError):
    """Somebody else is at work on the file."""


ErrorTable = Sequence[tuple[tuple[type[Exception], ...], Callable[[], ShareError]]]
"""Errors of an SDK, and what they mean."""


class ShareEntry(NamedTuple):
    """A file or folder on a share; links, pipes and devices are none."""

    parts: Parts
    stat: FileStat | None
    """None for a folder."""


class Stream(Protocol):
    """Bytes in their order."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Share(Protocol):
    """A folder on another machine, connected; nothing of it ever writes there.

    Every method may raise ``ShareError``, or whatever its SDK raises: ``trouble`` says what that means.
    """

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """What lies in a folder; a store without folders lists all files at its root."""

    def stat(self, file: Parts) -> FileStat:
        """One file as ``list`` shows it, asked anew."""

    def open(self, file: Parts, file_stat: FileStat, start: int) -> AbstractContextManager[Stream]:
        """The bytes of a file that looks like this, from ``start`` on."""

    def as_share_error(self, error: Exception) -> ShareError:
        """What an error of the methods above means."""

    def close(self) -> None:
        """Let go of the connection."""


def plain_share_error(error: Exception) -> ShareError:
    """What an error means whatever the protocol."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, FileNotFoundError) or number in _MISSING:
        return ShareFileMissing(MISSING)
    if isinstance(error, PermissionError) or number in _FORBIDDEN:
        return ShareForbidden(FORBIDDEN)
    if isinstance(error, TimeoutError):
        return ShareError(SILENT)
    if isinstance(error, OSError | EOFError):
        return ShareError(UNREACHABLE)
    return ShareError(f"The server answered in a way we do not understand ({type(error).__name__}).")


def share_error_by_type(error: Exception, table: ErrorTable) -> ShareError:
    """What an error means by the first row of a protocol's table that fits, else whatever the protocol."""
    return next((make() for kinds, make in table if isinstance(error, kinds)), None) or plain_share_error(
        error
    )


def wrong_account(variables: str) -> ShareError:
    """The sentence for credentials that a server does not take."""
    return ShareError(f"The server does not let us in: check {variables} (or FOOTNOTE_SHARE_ACCOUNTS).")
