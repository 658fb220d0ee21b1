"""PDFs that open only with a password: who may see what was read of them, and when they are tried again.

A content is read once, with the passwords of all folders that it lies in. It answers for the documents of
those folders alone whose own passwords open it.
"""

from __future__ import annotations

import logging

from sqlalchemy import Row, select, tuple_, update
from sqlmodel import col

from storage.errors import BlobsUnavailable, DocumentError
from storage.files.blobs import Blobs
from storage.folders.folder_passwords import FolderPasswords
from storage.pdf.pdf_process import PdfProcess
from storage.queues.planner import Generations, plan
from storage.queues.publication_queue import PublicationClaim
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import DocumentRow, ReadingRow, VersionRow

_log = logging.getLogger(__name__)


class LockedPdfs:
    """The readings that failed for want of a password, and the versions that another folder's one opened."""

    def __init__(
        self,
        database: Database,
        passwords: FolderPasswords,
        generations: Generations,
        *,
        blobs: Blobs,
        pdf: PdfProcess,
    ) -> None:
        """Mind the readings of these generations only."""
        self._database = database
        self._passwords = passwords
        self._generations = generations
        self._blobs = blobs
        self._pdf = pdf
        kind = tuple_(col(ReadingRow.generation), col(ReadingRow.rung))
        self._is_locked = (
            (col(ReadingRow.state) == "failed") & col(ReadingRow.locked) & kind.in_(generations.pairs())
        )

    async def refusal(self, claim: PublicationClaim) -> str | None:
        """Why the folder of a document may not see what was read of it; None when it may.

        Raises:
            DatabaseUnavailable, BlobsUnavailable, EngineStartError, OSError: nobody can tell now.
            DocumentError: the file cannot be opened any more.
        """
        if not claim.is_locked:
            return None
        given = await self._passwords.passwords_in(claim.folder_id)
        if await self._pdf.opens(await self._blobs.fetch(claim.sha256), given):
            return None
        self._passwords.note_wrong(claim.sha256, given)
        return given.refusal

    async def tick(self) -> int:
        """Let those be read, and those answer, for which there is a new password; returns how many.

        After a start every password is new: whether it was tried before is remembered nowhere.

        Raises:
            DatabaseUnavailable: the database does not work; the next tick tries again.
        """
        count = await self._read_again() + await self._unlock_versions()
        if count:
            _log.info("%d locked PDFs are tried with other passwords", count)
        return count

    async def _read_again(self) -> int:
        openable = await self._passwords.openable(select(col(ReadingRow.sha256)).where(self._is_locked))
        again = (
            update(ReadingRow)
            .where(self._is_locked)
            .values(
                state="waiting", locked=False, attempts=0, details=None, reason=None, next_attempt_at=None
            )
        )
        for sha256 in openable:
            async with self._database.transaction(exclusive=False) as session:
                await session.execute(again.where(col(ReadingRow.sha256) == sha256))
        return len(openable)

    async def _unlock_versions(self) -> int:
        """Return each is opened here, so that a password that does not fit changes nothing."""
        query = (
            select(
                col(VersionRow.id), col(VersionRow.sha256), col(DocumentRow.id), col(DocumentRow.folder_id)
            )
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .where(col(VersionRow.locked), col(DocumentRow.state) != "deleted")
            .where(col(VersionRow.number) == newest_number(VersionRow))
        )
        async with self._database.snapshot() as session:
            locked = (await session.execute(query)).all()
        return sum([await self._unlock(row) for row in locked])

    async def _unlock(self, row: Row[int, str, object, int]) -> bool:
        version_id, sha256, document_id, folder_id = row
        given = await self._passwords.passwords_in(folder_id)
        if not self._passwords.has_untried(sha256, given):
            return False
        try:
            opens = await self._pdf.opens(await self._blobs.fetch(sha256), given)
        except (BlobsUnavailable, DocumentError, OSError) as error:
            _log.warning("locked sha256=%s is tried again later cause=%s", sha256, type(error).__name__)
            return False
        if not opens:
            self._passwords.note_wrong(sha256, given)
            return False
        async with self._database.transaction() as session:
            version = await session.get(VersionRow, version_id, with_for_update=True)
            document = await session.get(DocumentRow, document_id, with_for_update=True)
            if version is None or document is None or document.folder_id != folder_id:
                return False
            version.locked = False
            if document.state == "quarantined":
                document.state, document.reason = "present", None
            await session.flush()
            await plan(session, self._generations, {sha256})
        return True
