"""Deletion guard: which documents of a folder are certainly gone, and which deletions need approval."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Set
from uuid import UUID

from ingestion.sources.base import Scan
from ingestion.watch.known_files import KnownFolder
from storage.clock import monotonic_seconds
from storage.folders.folders import Folders

# How long a disappearance that is still going on is observed before it is judged.
AWAY_SECONDS = 30.0
_log = logging.getLogger(__name__)


def needs_approval(lost: int, of_folder: int, of_channel: int, share: float, *, before: int = 0) -> bool:
    """True if an admin must approve: a folder lost all documents, or a channel more than its share.

    Only documents that were once searchable count, and only those not asked about before.

    Args:
        of_folder: documents that it had.
        of_channel: documents that all folders of its channel had.
        share: fraction of the channel that may be deleted without approval.
        before: documents just deleted without approval, while the folder keeps losing files.
    """
    return lost > 0 and (lost == of_folder or lost + before > share * of_channel)


def pending_approvals(asked: Set[UUID], documents: Set[UUID], away: Set[UUID]) -> frozenset[UUID]:
    """Return the documents that still need approval; none if a missing location is partly back.

    Files that are then still missing are judged as if no one had been asked: deletions during an outage of a
    share are no mass deletion.

    Args:
        away: those that a complete scan misses.
    """
    return frozenset() if documents <= asked and not documents <= away else frozenset(asked)


class DeletionPolicy:
    """Decides about documents that complete scans of one folder missed."""

    def __init__(
        self,
        known: KnownFolder,
        folders: Folders,
        ask_from_share: float,
        clock: Callable[[], float] = monotonic_seconds,
        *,
        away_seconds: float,
    ) -> None:
        """Judge the files that are missing from a folder.

        Args:
            folders: store of deletions and approvals.
            ask_from_share: deletions need approval above this fraction of the channel's documents, or if they
                empty the folder; ``needs_approval`` says which count.
            away_seconds: minimum absence of a file: some programs save by removing the old file first.
        """
        self._known = known
        self._folders = folders
        self._share = ask_from_share
        self._away_seconds = away_seconds
        self._clock = clock
        # File -> time when it was first missed.
        self._missed: dict[str, float] = {}
        self._since = 0.0
        # Once searchable documents, deleted without approval while the folder keeps losing files.
        self._deleted_unapproved = 0
        # Documents whose deletion needs approval; None before the first judgement.
        self.asked: frozenset[UUID] | None = None

    @property
    def is_settled(self) -> bool:
        """True if nothing was missing at the last complete scan."""
        return not self._missed

    @property
    def is_waiting(self) -> bool:
        """True if the next complete scan decides about files that the last one missed."""
        return len(self._missed) > len(self.asked or ())

    async def judge(self, scan: Scan, arriving: Collection[int]) -> str | None:
        """Delete documents missed by two scans for long enough; return the question for an admin, if any.

        Args:
            arriving: sizes of unfinished files: one may be the new name of a missing file.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        missing = self._known.documents.keys() - scan.files.keys()
        question = await self._folders.deletion_approval(self._known.folder.id)
        asked = self._still_asked(question.asked, missing)
        is_growing = bool(missing - self._missed.keys())
        twice = self._note(missing, is_growing)
        if twice:
            self._known.invalidate()
            await self._known.load()
        away = {known.document: file for file, known in self._known.documents.items() if file in missing}
        gone = {
            one: file for one, file in away.items() if file in twice and not self._may_come(file, arriving)
        }
        answered = await self._folders.answered(self._known.folder.channel_id) if gone else frozenset()
        asked = self._needing_approval(gone, asked, question.approved, answered) | (
            asked & (away.keys() - gone.keys())
        )
        allowed = {one: file for one, file in gone.items() if one not in asked}
        await self._delete(allowed, question.approved - away.keys())
        unasked = (allowed.keys() & answered) - question.approved
        self._deleted_unapproved = self._deleted_unapproved + len(unasked) if is_growing else 0
        self.asked = asked
        return self._sentence(len(asked)) if asked else None

    async def judge_absence(self, problem: str) -> str:
        """Delete all documents of a missing location once an admin approved; return a message for the admin.

        Args:
            problem: a sentence that says how the location is missing.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        question = await self._folders.deletion_approval(self._known.folder.id)
        if question.approved:
            self._known.invalidate()
            await self._known.load()
        if self._documents().keys() <= question.approved:
            await self._delete(self._documents(), ())
        self.asked = frozenset(self._documents())
        return f"{problem} {self._offer(len(self.asked))}".rstrip()

    def _still_asked(self, asked: Set[UUID], missing: Set[str]) -> frozenset[UUID]:
        """Return the documents that still need approval; clear missed files if the location is back."""
        documents = self._documents()
        away = {document for document, file in documents.items() if file in missing}
        still = pending_approvals(asked, documents.keys(), away)
        if still != asked:
            self._missed.clear()
        return still

    def _documents(self) -> dict[UUID, str]:
        return {known.document: file for file, known in self._known.documents.items()}

    def _note(self, missing: set[str], is_growing: bool) -> set[str]:
        """Return files that are missing again and for long enough; none while more files disappear.

        Files that are deleted together are missed by different scans, so they are judged together, once the
        last one was away for long enough.
        """
        now = self._clock()
        if not self._missed:
            self._since = now
        away = {
            file for file in missing & self._missed.keys() if now - self._missed[file] >= self._away_seconds
        }
        self._missed = {file: self._missed.get(file, now) for file in missing}
        is_recent = any(now - first < self._away_seconds for first in self._missed.values())
        waits = (is_growing or is_recent) and now - self._since < AWAY_SECONDS + self._away_seconds
        return set() if waits else away

    def _may_come(self, file: str, arriving: Collection[int]) -> bool:
        """True if a missing document may still turn out to be an arriving file."""
        file_stat = self._known.documents[file].stat
        return file_stat is not None and file_stat.size in arriving

    def _needing_approval(
        self, gone: Mapping[UUID, str], asked: Set[UUID], approved: Set[UUID], answered: Set[UUID]
    ) -> frozenset[UUID]:
        """Return the documents that need approval: those asked about; all if too many are gone."""
        unapproved = gone.keys() - approved
        waiting = unapproved & asked & answered
        lost = (unapproved & answered) - waiting
        of_folder = (self._documents().keys() & answered) - waiting - (gone.keys() & approved)
        of_channel = len(answered - waiting) + self._deleted_unapproved
        asks = needs_approval(
            len(lost), len(of_folder), of_channel, self._share, before=self._deleted_unapproved
        )
        return frozenset(lost | waiting if asks else waiting)

    async def _delete(self, gone: Mapping[UUID, str], settled: Collection[UUID]) -> None:
        if not gone and not settled:
            return
        for document in await self._folders.delete(self._known.folder.id, gone, settled):
            _log.info("document=%s outcome=deleted", document)
        for file in gone.values():
            self._missed.pop(file, None)
        self._known.invalidate()
        await self._known.load()

    def _offer(self, documents: int) -> str:
        """Return what approval would do, for a location that is gone."""
        if not documents:
            is_mapped = self._known.folder.origin == "map"
            return "If it is gone for good, remove its entry from folders.toml." if is_mapped else ""
        whose = "Its only document stays" if documents == 1 else f"Its {documents} documents stay"
        return f"{whose} searchable. If it is gone for good, confirm the deletion: {self._command()}"

    def _command(self) -> str:
        return f"footnote folders approve {self._known.folder.id}"

    def _sentence(self, missing: int) -> str:
        files, command = len(self._known.documents), self._command()
        if files == 1:
            return f"The folder's only file disappeared. Put it back, or confirm its deletion: {command}"
        return (
            f"{missing} of {files} files disappeared at once, so nothing was deleted. "
            f"Put them back, or confirm their deletion: {command}"
        )
