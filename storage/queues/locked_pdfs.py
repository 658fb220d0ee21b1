"""Password-protected PDFs: access per folder, and retries with new passwords.

A content is read once, with the passwords of all folders that contain it. It answers only for the documents
of folders whose own passwords open it.
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
    """Readings that failed for lack of a password, and versions opened only by another folder's one."""

    def __init__(
        self,
        database: Database,
        passwords: FolderPasswords,
        generations: Generations,
        *,
        blobs: Blobs,
        pdf: PdfProcess,
    ) -> None:
        """Handle the readings of these generations only."""
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
        """Return why a document's folder may not see its reading; None if it may.

        Raises:
            DatabaseUnavailable, BlobsUnavailable, EngineStartError, OSError: the check failed; retry later.
            DocumentError: the file cannot be opened any more.
        """
        if not claim.is_locked:
            return None
        given = await self._passwords.passwords_in(claim.folder_id)
        if await self._pdf.can_open(await self._blobs.fetch(claim.sha256), given):
            return None
        self._passwords.note_wrong(claim.sha256, given)
        return given.refusal

    async def tick(self) -> int:
        """Requeue readings and unlock versions for which there is a new password; return their number.

        After a start every password counts as new, because attempts are not persisted.

        Raises:
            DatabaseUnavailable: the database does not work; the next tick tries again.
        """
        count = await self._read_again() + await self._unlock_versions()
        if count:
            _log.info("retrying locked PDFs with new passwords: %d", count)
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
        """Unlock the versions that their folder's passwords open; return their number."""
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
        # Each file is opened here first, so that a wrong password changes nothing.
        return sum([await self._unlock(row) for row in locked])

    async def _unlock(self, row: Row[int, str, object, int]) -> bool:
        version_id, sha256, document_id, folder_id = row
        given = await self._passwords.passwords_in(folder_id)
        if not self._passwords.has_untried(sha256, given):
            return False
        try:
            opens = await self._pdf.can_open(await self._blobs.fetch(sha256), given)
        except (BlobsUnavailable, DocumentError, OSError) as error:
            _log.warning("unlocking failed, retrying: sha256=%s cause=%s", sha256, type(error).__name__)
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
