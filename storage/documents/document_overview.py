"""All documents as whoever runs the service looks through them: state, versions, last answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlmodel import col

from storage.documents.catalog import Catalog
from storage.models import DocumentStatus
from storage.sql.database import Database
from storage.sql.tables import CitationRow, DocumentRow, PublicationRow, ReadingRow, VersionRow


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A content of a document whose bytes are kept."""

    id: int
    number: int
    arrived_at: datetime
    is_live: bool
    chunks: int
    """Of the reading that answers; 0 while none does."""
    figures: int


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document with what is known of its versions."""

    status: DocumentStatus
    versions: Sequence[KeptVersion]
    """Newest first."""
    answered_at: datetime | None
    """When a quote or figure of it was last shown, as far as citations are kept."""

    @property
    def live(self) -> KeptVersion | None:
        """The version that answers."""
        return next((one for one in self.versions if one.is_live), None)


class DocumentOverview:
    """Reads the documents of a channel."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    async def of(self, channel_id: int) -> list[ListedDocument]:
        """The documents of a channel by file name, without deleted ones.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        statuses = await self._catalog.undeleted(channel_id)
        versions: dict[UUID, list[KeptVersion]] = defaultdict(list)
        answered: dict[UUID, datetime] = {}
        async with self._database.snapshot() as session:
            rows = await session.execute(_versions(channel_id))
            for document, chunks, figures, id_, number, arrived_at in rows:
                kept = KeptVersion(id_, number, arrived_at, chunks is not None, chunks or 0, figures or 0)
                versions[document].append(kept)
            for document, moment in await session.execute(_answered(channel_id)):
                answered[document] = moment
        return [ListedDocument(one, versions[one.document], answered.get(one.document)) for one in statuses]


def _versions(channel_id: int) -> Select[UUID, int, int, int, int, datetime]:
    """Versions of a channel's documents, newest first, with what answers of them."""
    return (
        select(
            col(VersionRow.document_id),
            col(ReadingRow.chunks),
            col(ReadingRow.figures),
            col(VersionRow.id),
            col(VersionRow.number),
            col(VersionRow.created_at),
        )
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .outerjoin(
            PublicationRow,
            (col(PublicationRow.version_id) == VersionRow.id) & (col(PublicationRow.state) == "live"),
        )
        .outerjoin(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(DocumentRow.channel_id) == channel_id, col(DocumentRow.state) != "deleted")
        .order_by(col(VersionRow.number).desc())
    )


def _answered(channel_id: int) -> Select[UUID, datetime]:
    """When something of a document was last shown, wherever that was."""
    return (
        select(col(VersionRow.document_id), func.max(CitationRow.created_at))
        .join(VersionRow, col(VersionRow.id) == CitationRow.version_id)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.channel_id) == channel_id)
        .group_by(col(VersionRow.document_id))
    )
