"""Decides which documents of a folder are surely gone, and which deletions wait for an admin's word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from ingestion.known import KnownFolder
from ingestion.sources.port import Scan
from storage.clock import steady_seconds
from storage.folders import Folders, Question

PATIENCE_SECONDS = 30.0
"""How long a disappearance that still goes on is watched before it is judged as far as it got."""
_log = logging.getLogger(__name__)


class Vanishing:
    """What the complete looks at one folder missed."""

    def __init__(
        self,
        known: KnownFolder,
        folders: Folders,
        ask_from_share: float,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """Judge the files that are missing from a folder.

        Args:
            known: what the folder should hold.
            folders: where deletions and questions are written down.
            ask_from_share: an admin is asked when more than this share of the channel's documents
                vanished, or all documents of the folder.
            clock: seconds that never jump.
        """
        self._known = known
        self._folders = folders
        self._share = ask_from_share
        self._clock = clock
        self._missed: set[str] = set()
        self._since = 0.0
        self.asked: frozenset[UUID] = frozenset()
        """Documents whose deletion waits for a word."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing was missing at the last complete look."""
        return not self._missed

    async def judge(self, scan: Scan, arriving: Collection[int]) -> str | None:
        """Delete what two complete looks in a row missed; returns what an admin is asked, if anything.

        Args:
            scan: a complete look at a healthy folder.
            arriving: sizes of files that are not finished: one of them may be a missing one's new name.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        twice = self._note(self._known.documents.keys() - scan.files.keys())
        question = await self._folders.question(self._known.folder.id) if twice or self.asked else Question()
        if twice:
            self._known.forget()
            await self._known.load()
        gone, held = self._gone(twice - scan.files.keys(), arriving)
        asked = await self._questionable(gone, question) | (held & question.asked)
        await self._delete({one: file for one, file in gone.items() if one not in asked}, question, scan)
        self.asked = asked
        return self._sentence(len(asked)) if asked else None

    def _note(self, missing: set[str]) -> set[str]:
        """What is missing for the second time; nothing while files go on vanishing."""
        twice, is_growing = missing & self._missed, bool(missing - self._missed)
        if not self._missed:
            self._since = self._clock()
        self._missed = missing
        return set() if is_growing and self._clock() - self._since < PATIENCE_SECONDS else twice

    def _gone(self, missing: set[str], arriving: Collection[int]) -> tuple[dict[UUID, str], frozenset[UUID]]:
        """(the missing documents, those that may yet turn out to be one of the arriving files)."""
        gone, held = {}, set()
        for file in missing:
            known = self._known.documents.get(file)
            if known is not None and known.look is not None and known.look.size in arriving:
                held.add(known.document)
            elif known is not None:
                gone[known.document] = file
        return gone, frozenset(held)

    async def _questionable(self, gone: Mapping[UUID, str], question: Question) -> frozenset[UUID]:
        """Those of the gone that need a word: all that have none yet, or else what was asked before."""
        open_ones = frozenset(gone.keys() - question.approved)
        if not open_ones:
            return open_ones
        allowed = len(gone) - len(open_ones)
        is_all = len(open_ones) == len(self._known.documents) - allowed
        if is_all or len(open_ones) > self._share * await self._folders.count(self._known.folder.channel_id):
            return open_ones
        return open_ones & question.asked

    async def _delete(self, gone: Mapping[UUID, str], question: Question, scan: Scan) -> None:
        back = {
            known.document
            for file, known in self._known.documents.items()
            if file in scan.files and known.document in question.approved
        }
        if not gone and not back:
            return
        for document in await self._folders.delete(self._known.folder.id, gone, back):
            _log.info("document=%s outcome=deleted", document)
        self._missed -= set(gone.values())
        self._known.forget()
        await self._known.load()

    def _sentence(self, missing: int) -> str:
        return (
            f"{missing} of {len(self._known.documents)} files vanished from the folder at once, so they were "
            f"not deleted. Put them back, or let them go: footnote folders approve {self._known.folder.id}"
        )
