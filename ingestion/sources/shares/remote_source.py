"""A folder on another machine, reached by a protocol: never written to, never waited for without end.

``Share`` is all that it needs of a protocol: list a folder, stat a file, stream it, name its errors.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources.base import FileStat, Parts, Scan, ScannedFile
from ingestion.sources.safe_copy import BLOCK_BYTES, UnreadableFiles, refuse_large
from ingestion.sources.scan_report import ScanReport, is_foreign_folder, why_passed_over
from ingestion.sources.watchdog import CallAbandoned, Heartbeat, ShareTimeout, Watchdog, no_heartbeat
from storage.errors import BlobsUnavailable

MISSING = "The folder, or a part of it, is missing: is the address right, and the disk connected?"
FORBIDDEN = "The folder, or a part of it, may not be read: give our account the right to read it."
SILENT = "The server did not answer in time: is it up, and the way to it?"
UNREACHABLE = "The server cannot be reached, or broke off: is it up, and the address right?"
BUSY = "Somebody else is writing this file."
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM)

# Folders below folders that are listed; a server could go on inventing them.
MAX_DEPTH = 100


class ShareError(Exception):
    """Something did not work; the message is a sentence for an admin, without names or secrets."""


class ShareFileMissing(ShareError):
    """There is no such file or folder."""


class ShareForbidden(ShareError):
    """It is there, but we may not read it."""


class ShareFileBusy(ShareError):
    """Somebody else is at work on the file."""


# Errors of an SDK, and what they mean.
ErrorTable = Sequence[tuple[tuple[type[Exception], ...], Callable[[], ShareError]]]


class ShareEntry(NamedTuple):
    """A file or folder on a share; links, pipes and devices are none."""

    parts: Parts
    # None for a folder.
    stat: FileStat | None


class Stream(Protocol):
    """Bytes in their order."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Share(Protocol):
    """A folder on another machine, connected; nothing of it ever writes there.

    Every method may raise ``ShareError``, or whatever its SDK raises; see ``as_share_error``.
    """

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """What lies in a folder; a store without folders lists all files at its root."""

    def stat(self, file: Parts) -> FileStat:
        """One file as ``list`` shows it, asked anew."""

    def open(self, file: Parts, file_stat: FileStat, start: int) -> AbstractContextManager[Stream]:
        """Return the bytes of a file that has this stat, from ``start`` on."""

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
    make = next((make for kinds, make in table if isinstance(error, kinds)), None)
    return make() if make else plain_share_error(error)


def wrong_account(variables: str) -> ShareError:
    """Return the sentence for credentials that a server does not take."""
    return ShareError(f"The server does not let us in: check {variables} (or FOOTNOTE_SHARE_ACCOUNTS).")


class RemoteSource:
    """Implements ``Source`` over any ``Share``; connects when it is first asked, and again after trouble."""

    is_remote = True

    def __init__(self, location: str, connect: Callable[[], Share], seconds: float) -> None:
        """A source at this URL.

        Args:
            location: the URL without credentials.
            connect: makes the connection; called in a thread of our own.
            seconds: how long the other side may be silent.
        """
        self.location = location
        self._connect = connect
        self._watchdog = Watchdog(seconds)
        self._share: Share | None = None
        self._is_closed = False
        self._unreadable = UnreadableFiles()

    def scan(self) -> Scan:
        """See every PDF in it."""
        return self._ask(self._scan)

    def scan_file(self, name: str) -> Scan:
        """See one file that lies directly in it."""
        return self._ask(partial(self._scan_file, name))

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """Return the last bytes of a file."""
        try:
            return self._watchdog.call(partial(self._tail, seen, size))
        except (ShareTimeout, ShareError):
            return b""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it."""
        refuse_large(seen, max_bytes)
        try:
            sha256 = self._watchdog.call(partial(self._copy, seen, target))
        except ShareFileMissing as error:
            raise NotAFile from error
        except ShareFileBusy as error:
            raise FileChanged from error
        except ShareForbidden as error:
            self._unreadable.add(seen.parts)
            raise FileRefused("This file may not be read: give our account the right to read it.") from error
        except (ShareTimeout, ShareError) as error:
            raise BlobsUnavailable(str(error)) from error
        except OSError as error:
            raise BlobsUnavailable(f"a file could not be copied: {error.strerror}") from error
        self._unreadable.remove(seen.parts)
        return sha256

    def close(self) -> None:
        """Let go of the connection; a call on its way fails at its next step."""
        self._is_closed = True
        if self._share is not None:
            self._watchdog.call_later(self._let_go)

    def _ask(self, read_scan: Callable[[Heartbeat], Scan]) -> Scan:
        try:
            return self._watchdog.call(read_scan)
        except (ShareTimeout, ShareError) as error:
            return Scan(problem=str(error))

    def _scan(self, heartbeat: Heartbeat) -> Scan:
        report = ScanReport()
        folders: list[Parts] = [()]
        while folders:
            folder = folders.pop()
            try:
                folders += self._list(folder, report, heartbeat)
            except ShareFileMissing as error:
                report.add_problem(str(error), folder) if folder else report.add_absence(str(error))
            except ShareForbidden as error:
                report.add_problem(str(error), folder)
        return report.scan()

    def _list(self, folder: Parts, report: ScanReport, heartbeat: Heartbeat) -> list[Parts]:
        """Put one folder's PDFs into ``report`` and return the folders in it."""
        deeper = []
        with self._reach() as share:
            for entry in share.list(folder):
                heartbeat()
                if not _is_path(entry.parts):
                    report.add_unusable(entry.parts)
                elif entry.stat is None and not is_foreign_folder(entry.parts[-1]):
                    deeper.append(entry.parts)
                elif entry.stat is None or any(map(is_foreign_folder, entry.parts[:-1])):
                    continue
                elif why_passed_over(entry.parts[-1]) is None:
                    report.add(entry.parts, self._unreadable.shown(entry.parts, entry.stat))
                else:
                    report.add_stranger(entry.parts)
        return deeper

    def _scan_file(self, name: str, heartbeat: Heartbeat) -> Scan:
        report = ScanReport()
        with suppress(ShareFileMissing), self._reach() as share:
            report.add((name,), self._unreadable.shown((name,), share.stat((name,))))
        return report.scan()

    def _tail(self, seen: ScannedFile, size: int, heartbeat: Heartbeat) -> bytes:
        found = b""
        with self._reach() as share:
            start = max(0, seen.stat.size - size)
            with share.open(seen.parts, share.stat(seen.parts), start) as stream:
                while len(found) < size and (block := stream.read(size)):
                    heartbeat()
                    found += block
        return found

    def _copy(self, seen: ScannedFile, target: Path, heartbeat: Heartbeat) -> str:
        """Copy between two stats of the same path that must both equal the one that settled."""
        digest, size = hashlib.sha256(), 0
        file_stat = self._expect(seen)
        with target.open("wb") as copied:
            with self._reach() as share, share.open(seen.parts, file_stat, 0) as stream:
                while block := stream.read(BLOCK_BYTES):
                    heartbeat()
                    size += len(block)
                    if size > seen.stat.size:
                        raise FileChanged
                    digest.update(block)
                    copied.write(block)
        self._expect(seen)
        if size != seen.stat.size:
            raise FileChanged
        return digest.hexdigest()

    def _expect(self, seen: ScannedFile) -> FileStat:
        with self._reach() as share:
            file_stat = share.stat(seen.parts)
        if self._unreadable.shown(seen.parts, file_stat) != seen.stat:
            raise FileChanged
        return file_stat

    @contextmanager
    def _reach(self) -> Iterator[Share]:
        """Yield the share, connected; whatever goes wrong with it comes out as ``ShareError``."""
        try:
            if self._is_closed:
                raise ShareError("The folder is not watched any more.")
            if self._share is None:
                self._share = self._connect()
            yield self._share
        except (CallAbandoned, FileChanged):
            raise
        except Exception as error:
            found = error
            if not isinstance(error, ShareError):
                found = self._share.as_share_error(error) if self._share else plain_share_error(error)
            if not isinstance(found, ShareFileMissing | ShareForbidden | ShareFileBusy):
                self._let_go()
            raise found from error

    def _let_go(self, _heartbeat: Heartbeat = no_heartbeat) -> None:
        """Close the connection, which may be broken already; the next call makes a new one."""
        share, self._share = self._share, None
        if share is not None:
            with suppress(Exception):
                share.close()


def _is_path(parts: Parts) -> bool:
    """True if a name from the other side leads below the folder, and nowhere else."""
    if len(parts) > MAX_DEPTH:
        return False
    return all(part not in ("", ".", "..") and not set(part) & {"/", "\0"} for part in parts)
