"""A folder on another machine, reached by a protocol: never written to, never waited for without end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ingestion.errors import FileChanged, FileRefused, NotAFile
from ingestion.sources.findings import ScanReport
from ingestion.sources.names import is_foreign_folder, why_passed_over
from ingestion.sources.opening import BLOCK_BYTES, refuse_large
from ingestion.sources.patience import CallAbandoned, Heartbeat, ShareTimeout, Watchdog
from ingestion.sources.port import FileStat, Scan, ScannedFile
from ingestion.sources.share import (
    Parts,
    Share,
    ShareEntry,
    ShareError,
    ShareFileBusy,
    ShareFileMissing,
    ShareForbidden,
    plain_share_error,
)
from ingestion.sources.unreadable import UnreadableFiles
from storage.errors import BlobsUnavailable

MAX_DEPTH = 100
"""Folders below folders that are looked into; a server could go on inventing them."""


def _nothing() -> None:
    """The beat of what needs none."""


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
        """The last bytes of a file."""
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
            except ShareFileMissing as error_found:
                report.add_problem(str(error_found), folder) if folder else report.add_absence(
                    str(error_found)
                )
            except ShareForbidden as error_found:
                report.add_problem(str(error_found), folder)
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
                elif entry.stat is not None and _is_pdf(entry):
                    report.add(entry.parts, self._unreadable.shown(entry.parts, entry.stat))
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
        """Copy between two looks at the same path that must both equal the one that settled."""
        digest, size = hashlib.sha256(), 0
        file_stat = self._expect(seen)
        with target.open("wb") as copied:
            for block in self._blocks(seen.parts, file_stat):
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

    def _blocks(self, parts: Parts, file_stat: FileStat) -> Iterator[bytes]:
        with self._reach() as share, share.open(parts, file_stat, 0) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block

    def _expect(self, seen: ScannedFile) -> FileStat:
        with self._reach() as share:
            file_stat = share.stat(seen.parts)
        if self._unreadable.shown(seen.parts, file_stat) != seen.stat:
            raise FileChanged
        return file_stat

    @contextmanager
    def _reach(self) -> Iterator[Share]:
        """The share, connected; whatever goes wrong with it comes out as ``ShareError``."""
        try:
            if self._is_closed:
                raise ShareError("The folder is not watched any more.")
            if self._share is None:
                self._share = self._connect()
            yield self._share
        except (CallAbandoned, FileChanged):
            raise
        except Exception as error:
            error_found = self._as_ingestion_error(error)
            if not isinstance(error_found, ShareFileMissing | ShareForbidden | ShareFileBusy):
                self._let_go()
            raise error_found from error

    def _as_ingestion_error(self, error: Exception) -> ShareError:
        if isinstance(error, ShareError):
            return error
        return self._share.as_share_error(error) if self._share else plain_share_error(error)

    def _let_go(self, _heartbeat: Heartbeat = _nothing) -> None:
        """Close the connection, which may be broken already; the next call makes a new one."""
        share, self._share = self._share, None
        if share is not None:
            with suppress(Exception):
                share.close()


def _is_pdf(entry: ShareEntry) -> bool:
    *folders, name = entry.parts
    return why_passed_over(name) is None and not any(is_foreign_folder(folder) for folder in folders)


def _is_path(parts: Parts) -> bool:
    """Whether a name from the other side leads below the folder, and nowhere else."""
    if len(parts) > MAX_DEPTH:
        return False
    return all(part not in ("", ".", "..") and not set(part) & {"/", "\0"} for part in parts)
