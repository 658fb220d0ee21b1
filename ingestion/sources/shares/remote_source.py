"""Source on another machine: read-only, with an inactivity timeout.

``Share`` is the interface of a protocol: list a folder, stat a file, stream it, map its errors.
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
from ingestion.sources.safe_copy import BLOCK_BYTES, UnreadableFiles, check_size
from ingestion.sources.scan_report import ScanReport, is_foreign_folder, skip_reason
from ingestion.sources.watchdog import CallAbandoned, Heartbeat, ShareTimeout, Watchdog, no_heartbeat
from storage.errors import BlobsUnavailable

MISSING = "The folder, or a part of it, is missing: is the address right, and the disk connected?"
FORBIDDEN = "The folder, or a part of it, may not be read: give our account the right to read it."
SILENT = "The server did not answer in time: is it up, and the way to it?"
UNREACHABLE = "The server is unreachable, or closed the connection: is it up, and is the address correct?"
BUSY = "Another program is writing this file."
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM)

# Maximum depth of folders; a server could go on inventing them.
MAX_DEPTH = 100


class ShareError(Exception):
    """An operation failed; the message is for an admin, without names or secrets."""


class ShareFileMissing(ShareError):
    """Missing file or folder."""


class ShareForbidden(ShareError):
    """Missing permission to read a file or folder."""


class ShareFileBusy(ShareError):
    """File in use by another client."""


# (exception types of an SDK, factory of the share error) in order of precedence.
ErrorTable = Sequence[tuple[tuple[type[Exception], ...], Callable[[], ShareError]]]


class ShareEntry(NamedTuple):
    """A file or folder on a share; links, pipes and devices are left out."""

    parts: Parts
    # None for a folder.
    stat: FileStat | None


class Stream(Protocol):
    """A readable byte stream."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; empty at the end."""


class Share(Protocol):
    """A connected folder on another machine; read-only.

    Every method may raise ``ShareError`` or an error of its SDK; see ``as_share_error``.
    """

    def list(self, folder: Parts) -> Iterator[ShareEntry]:
        """Yield the entries of a folder; a store without folders lists all files at its root."""

    def stat(self, file: Parts) -> FileStat:
        """Return the current stat of a file, in the form of ``list``."""

    def open(self, file: Parts, file_stat: FileStat, start: int) -> AbstractContextManager[Stream]:
        """Open a file with this stat at offset ``start``."""

    def as_share_error(self, error: Exception) -> ShareError:
        """Map an error of the methods above."""

    def close(self) -> None:
        """Close the connection."""


def plain_share_error(error: Exception) -> ShareError:
    """Map an error independently of the protocol."""
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
    """Map an error by the first matching row of a protocol's table, else by ``plain_share_error``."""
    make = next((make for kinds, make in table if isinstance(error, kinds)), None)
    return make() if make else plain_share_error(error)


def wrong_account(variables: str) -> ShareError:
    """Return the error for rejected credentials."""
    return ShareError(f"The server rejected the credentials: check {variables} (or FOOTNOTE_SHARE_ACCOUNTS).")


class RemoteSource:
    """``Source`` over any ``Share``; connects on first use, and again after errors."""

    is_remote = True

    def __init__(self, location: str, connect: Callable[[], Share], seconds: float) -> None:
        """Store the address; the connection is opened on first use.

        Args:
            location: the URL without credentials.
            connect: opens the connection; called in a thread of its own.
        """
        self.location = location
        self._connect = connect
        self._watchdog = Watchdog(seconds)
        self._share: Share | None = None
        self._is_closed = False
        self._unreadable = UnreadableFiles()

    def scan(self) -> Scan:
        """Find every readable file."""
        return self._ask(self._scan)

    def scan_file(self, name: str) -> Scan:
        """Find one file directly in the folder."""
        return self._ask(partial(self._scan_file, name))

    def tail(self, seen: ScannedFile, size: int) -> bytes:
        """Return the last bytes of a file."""
        try:
            return self._watchdog.call(partial(self._tail, seen, size))
        except (ShareTimeout, ShareError):
            return b""

    def copy(self, seen: ScannedFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it; return the sha256 in hex."""
        check_size(seen, max_bytes)
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
        """Close the connection; a running call fails at its next step."""
        self._is_closed = True
        if self._share is not None:
            self._watchdog.call_later(self._disconnect)

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
        """Add a folder's documents to ``report``; return its subfolders."""
        deeper = []
        with self._connected() as share:
            for entry in share.list(folder):
                heartbeat()
                if not _is_path(entry.parts):
                    report.add_unusable(entry.parts)
                elif entry.stat is None and not is_foreign_folder(entry.parts[-1]):
                    deeper.append(entry.parts)
                elif entry.stat is None or any(map(is_foreign_folder, entry.parts[:-1])):
                    continue
                elif skip_reason(entry.parts[-1]) is None:
                    report.add(entry.parts, self._unreadable.stat_to_remember(entry.parts, entry.stat))
                else:
                    report.add_unsupported(entry.parts)
        return deeper

    def _scan_file(self, name: str, heartbeat: Heartbeat) -> Scan:
        report = ScanReport()
        with suppress(ShareFileMissing), self._connected() as share:
            report.add((name,), self._unreadable.stat_to_remember((name,), share.stat((name,))))
        return report.scan()

    def _tail(self, seen: ScannedFile, size: int, heartbeat: Heartbeat) -> bytes:
        found = b""
        with self._connected() as share:
            start = max(0, seen.stat.size - size)
            with share.open(seen.parts, share.stat(seen.parts), start) as stream:
                while len(found) < size and (block := stream.read(size)):
                    heartbeat()
                    found += block
        return found

    def _copy(self, seen: ScannedFile, target: Path, heartbeat: Heartbeat) -> str:
        """Copy between two stats of the path, which must both equal the settled one."""
        digest, size = hashlib.sha256(), 0
        file_stat = self._expect(seen)
        with target.open("wb") as copied:
            with self._connected() as share, share.open(seen.parts, file_stat, 0) as stream:
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
        with self._connected() as share:
            file_stat = share.stat(seen.parts)
        if self._unreadable.stat_to_remember(seen.parts, file_stat) != seen.stat:
            raise FileChanged
        return file_stat

    @contextmanager
    def _connected(self) -> Iterator[Share]:
        """Yield the connected share; all errors are raised as ``ShareError``."""
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
                self._disconnect()
            raise found from error

    def _disconnect(self, _heartbeat: Heartbeat = no_heartbeat) -> None:
        """Drop the connection, which may be broken already; the next call reconnects."""
        share, self._share = self._share, None
        if share is not None:
            with suppress(Exception):
                share.close()


def _is_path(parts: Parts) -> bool:
    """True if a name from the server is a path below the folder."""
    if len(parts) > MAX_DEPTH:
        return False
    return all(part not in ("", ".", "..") and not set(part) & {"/", "\0"} for part in parts)
