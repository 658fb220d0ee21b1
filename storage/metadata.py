"""Documents' metadata: among the details of a reading, and as an admin corrects it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select, text
from sqlmodel import col

from storage.database import Database
from storage.errors import SettingsError
from storage.metadata_models import MetadataField
from storage.models import Box
from storage.tables import IS_PRESENT, DocumentRow, VersionRow

KEY = "metadata"
"""Under which a reading's details hold it."""

FIELDS = (
    "sop_id", "version", "department", "effective", "last_updated", "title", "author", "organisation",
    "document_type", "language",
)  # fmt: skip
LONGEST_VALUE = 120


def kept_of(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """As they are kept under ``KEY``."""
    return {one.name: [one.value, one.page, [list(box) for box in one.boxes], one.day] for one in fields}


def metadata_of(details: Mapping[str, Any], corrected: Mapping[str, str]) -> dict[str, MetadataField]:
    """The fields by name: what a reading's details hold, and over it an admin's words."""
    printed = {
        name: MetadataField(name, value, page, tuple(Box(*box) for box in boxes), day)
        for name, (value, page, boxes, day) in details.get(KEY, {}).items()
    }
    said = {name: MetadataField(name, value, None, ()) for name, value in corrected.items()}
    return {name: one for name, one in (printed | said).items() if one.value}


class Corrections:
    """An admin's words about the newest content of a document; a newer content is read by itself again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def correct(self, channel_id: int, file: str, changes: Mapping[str, str | None]) -> int:
        """Say what fields of a file are: "" nothing, None what is printed. Returns the version's number.

        Raises:
            SettingsError: there is no such file, field or value.
        """
        if unknown := changes.keys() - set(FIELDS):
            raise SettingsError(f"{', '.join(sorted(unknown))}: no such field; there are {', '.join(FIELDS)}")
        if any(value and len(value) > LONGEST_VALUE for value in changes.values()):
            raise SettingsError(f"a value may have {LONGEST_VALUE} characters")
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
            return row.number
