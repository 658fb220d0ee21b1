"""Admins' corrections of document metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import select, text
from sqlmodel import col

from storage.errors import SettingsError
from storage.models import METADATA_FIELDS
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.tables import IS_PRESENT, DocumentRow, VersionRow

MAX_VALUE_CHARS = 120


class Corrections:
    """Corrections of the newest content of a document; a newer content starts without them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def correct(
        self, channel_id: int, file: str, changes: Mapping[str, str | None], action: AuditedAction
    ) -> int:
        """Set metadata fields: "" for empty, None for the printed value. Return the version's number.

        ``action`` is recorded in the audit log, with the document's id as its subject.

        Raises:
            SettingsError: the file, field or value is not valid.
        """
        if unknown := changes.keys() - set(METADATA_FIELDS):
            raise SettingsError(f"{', '.join(sorted(unknown))}: not one of {', '.join(METADATA_FIELDS)}")
        if any(value and len(value) > MAX_VALUE_CHARS for value in changes.values()):
            raise SettingsError(f"a value may have at most {MAX_VALUE_CHARS} characters")
        newest = (
            select(VersionRow)
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .where(
                col(DocumentRow.channel_id) == channel_id,
                col(DocumentRow.file) == file,
                text(f"document.{IS_PRESENT}"),
            )
            .order_by(col(VersionRow.number).desc())
            .limit(1)
        )
        async with self._database.transaction() as session:
            row = await session.scalar(newest)
            if row is None:
                raise SettingsError(f"the channel has no file {file}; see footnote documents")
            said = {**(row.corrected or {}), **changes}
            row.corrected = {name: value for name, value in said.items() if value is not None} or None
            await record_action(session, replace(action, subject=str(row.document_id)))
            return row.number
