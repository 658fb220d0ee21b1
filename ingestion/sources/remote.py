"""A folder on another machine, reached by a protocol: never written to, never waited for without end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ingestion.errors import NotAFile, NotSettled, Refused
from ingestion.sources.findings import Findings
from ingestion.sources.names import is_foreign_folder, why_passed_over
from ingestion.sources.opening import BLOCK_BYTES, refuse_large
from ingestion.sources.patience import Beat, GivenUp, Patience, Unanswered
from ingestion.sources.port import Look, Scan, SeenFile
from ingestion.sources.share import Busy, Entry, Forbidden, Missing, Parts, Share, Trouble, plain_trouble
from ingestion.sources.unreadable import UnreadableFiles
from storage.errors import BlobsUnavailable

MOST_LEVELS = 100
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
        self._patience = Patience(seconds)
        self._share: Share | None = None
        self._is_closed = False
        self._unreadable = UnreadableFiles()

    def scan(self) -> Scan:
        """See every PDF in it."""
        return self._ask(self._scan)

    def scan_file(self, name: str) -> Scan:
        """See one file that lies directly in it."""
        return self._ask(partial(self._scan_file, name))

    def tail(self, seen: SeenFile, size: int) -> bytes:
        """The last bytes of a file."""
        try:
            return self._patience.call(partial(self._tail, seen, size))
        except (Unanswered, Trouble):
            return b""

    def copy(self, seen: SeenFile, target: Path, max_bytes: int) -> str:
        """Copy a file while hashing it."""
        refuse_large(seen, max_bytes)
        try:
            sha256 = self._patience.call(partial(self._copy, seen, target))
        except Missing as error:
            raise NotAFile from error
        except Busy as error:
            raise NotSettled from error
        except Forbidden as error:
            self._unreadable.add(seen.parts)
            raise Refused("This file may not be read: give our account the right to read it.") from error
        except (Unanswered, Trouble) as error:
            raise BlobsUnavailable(str(error)) from error
        except OSError as error:
            raise BlobsUnavailable(f"a file could not be copied: {error.strerror}") from error
        self._unreadable.remove(seen.parts)
        return sha256

    def close(self) -> None:
        """Let go of the connection; a call on its way fails at its next step."""
        self._is_closed = True
        if self._share is not None:
            self._patience.call_later(self._let_go)

    def _ask(self, look: Callable[[Beat], Scan]) -> Scan:
        try:
            return self._patience.call(look)
        except (Unanswered, Trouble) as error:
            return Scan(problem=str(error))

    def _scan(self, beat: Beat) -> Scan:
        findings = Findings()
        folders: list[Parts] = [()]
        while folders:
            folder = folders.pop()
            try:
                folders += self._list(folder, findings, beat)
            except Missing as trouble:
                findings.add_problem(str(trouble), folder) if folder else findings.add_absence(str(trouble))
            except Forbidden as trouble:
                findings.add_problem(str(trouble), folder)
        return findings.scan()

    def _list(self, folder: Parts, findings: Findings, beat: Beat) -> list[Parts]:
        """Put one folder's PDFs into ``findings`` and return the folders in it."""
        deeper = []
        with self._reach() as share:
            for entry in share.list(folder):
                beat()
                if not _is_path(entry.parts):
                    findings.add_unusable(entry.parts)
                elif entry.look is None and not is_foreign_folder(entry.parts[-1]):
                    deeper.append(entry.parts)
                elif entry.look is not None and _is_pdf(entry):
                    findings.add(entry.parts, self._unreadable.shown(entry.parts, entry.look))
        return deeper

    def _scan_file(self, name: str, beat: Beat) -> Scan:
        findings = Findings()
        with suppress(Missing), self._reach() as share:
            findings.add((name,), self._unreadable.shown((name,), share.look((name,))))
        return findings.scan()

    def _tail(self, seen: SeenFile, size: int, beat: Beat) -> bytes:
        found = b""
        with self._reach() as share:
            start = max(0, seen.look.size - size)
            with share.open(seen.parts, share.look(seen.parts), start) as stream:
                while len(found) < size and (block := stream.read(size)):
                    beat()
                    found += block
        return found

    def _copy(self, seen: SeenFile, target: Path, beat: Beat) -> str:
        """Copy between two looks at the same path that must both equal the one that settled."""
        digest, size = hashlib.sha256(), 0
        look = self._expect(seen)
        with target.open("wb") as copied:
            for block in self._blocks(seen.parts, look):
                beat()
                size += len(block)
                if size > seen.look.size:
                    raise NotSettled
                digest.update(block)
                copied.write(block)
        self._expect(seen)
        if size != seen.look.size:
            raise NotSettled
        return digest.hexdigest()

    def _blocks(self, parts: Parts, look: Look) -> Iterator[bytes]:
        with self._reach() as share, share.open(parts, look, 0) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block

    def _expect(self, seen: SeenFile) -> Look:
        with self._reach() as share:
            look = share.look(seen.parts)
        if self._unreadable.shown(seen.parts, look) != seen.look:
            raise NotSettled
        return look

    @contextmanager
    def _reach(self) -> Iterator[Share]:
        """The share, connected; whatever goes wrong with it comes out as ``Trouble``."""
        try:
            if self._is_closed:
                raise Trouble("The folder is not watched any more.")
            if self._share is None:
                self._share = self._connect()
            yield self._share
        except (GivenUp, NotSettled):
            raise
        except Exception as error:
            trouble = self._meaning(error)
            if not isinstance(trouble, Missing | Forbidden | Busy):
                self._let_go()
            raise trouble from error

    def _meaning(self, error: Exception) -> Trouble:
        if isinstance(error, Trouble):
            return error
        return self._share.trouble(error) if self._share else plain_trouble(error)

    def _let_go(self, _beat: Beat = _nothing) -> None:
        """Close the connection, which may be broken already; the next call makes a new one."""
        share, self._share = self._share, None
        if share is not None:
            with suppress(Exception):
                share.close()


def _is_pdf(entry: Entry) -> bool:
    *folders, name = entry.parts
    return why_passed_over(name) is None and not any(is_foreign_folder(folder) for folder in folders)


def _is_path(parts: Parts) -> bool:
    """Whether a name from the other side leads below the folder, and nowhere else."""
    if len(parts) > MOST_LEVELS:
        return False
    return all(part not in ("", ".", "..") and not set(part) & {"/", "\0"} for part in parts)
