"""Has locked PDFs read again as soon as an admin gives a password that was not tried on them."""

from __future__ import annotations

import logging

from sqlalchemy import select, tuple_, update
from sqlmodel import col

from storage.database import Database
from storage.folder_passwords import FolderPasswords
from storage.planning import Generations
from storage.tables import ReadingRow

_log = logging.getLogger(__name__)


class LockedReadings:
    """The readings that failed for want of a password."""

    def __init__(self, database: Database, passwords: FolderPasswords, generations: Generations) -> None:
        """Mind the readings of these generations only."""
        self._database = database
        self._passwords = passwords
        kind = tuple_(col(ReadingRow.generation), col(ReadingRow.rung))
        self._is_locked = (
            (col(ReadingRow.state) == "failed") & col(ReadingRow.locked) & kind.in_(generations.pairs())
        )

    async def tick(self) -> int:
        """Let those wait to be read for which there is a new password; returns how many.

        After a start every password is new: whether it was tried before is remembered nowhere.

        Raises:
            DatabaseUnavailable: the database does not work; the next look tries again.
        """
        openable = await self._passwords.openable(select(col(ReadingRow.sha256)).where(self._is_locked))
        for sha256 in openable:
            await self._unlock(sha256)
        if openable:
            _log.info("%d locked PDFs are tried with other passwords", len(openable))
        return len(openable)

    async def _unlock(self, sha256: str) -> None:
        again = update(ReadingRow).where(self._is_locked, col(ReadingRow.sha256) == sha256)
        async with self._database.transaction(exclusive=False) as session:
            await session.execute(
                again.values(
                    state="waiting", locked=False, attempts=0, details=None, reason=None, next_attempt_at=None
                )
            )
