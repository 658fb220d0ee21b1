"""All documents as whoever runs the service looks through them: state, versions, last answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, func, select
from sqlmodel import col

from storage.documents.catalog import Catalog
from storage.documents.document_status import folder_states, overview, status_of
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
    # Of the reading that answers; 0 while none does.
    chunks: int
    figures: int
    # None: its pages' layout was not read, or by a release that did not count them.
    tables: int | None


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document with what is known of its versions."""

    channel_id: int
    status: DocumentStatus
    # Newest first.
    versions: Sequence[KeptVersion]
    # When a quote or figure of it was last shown, as far as citations are kept.
    answered_at: datetime | None

    @property
    def live(self) -> KeptVersion | None:
        """The version that answers."""
        return next((one for one in self.versions if one.is_live), None)


class DocumentOverview:
    """Reads the documents of channels."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    async def of(self, channels: Collection[int]) -> list[ListedDocument]:
        """Return the documents of channels by file name, without deleted ones.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        seen = overview()
        query = select(seen).where(seen.c.channel_id.in_(channels), seen.c.state != "deleted")
        versions: dict[UUID, list[KeptVersion]] = defaultdict(list)
        answered: dict[UUID, datetime] = {}
        async with self._database.snapshot() as session:
            folders = await folder_states(session, *channels)
            documents = (await session.execute(query.order_by(seen.c.file))).all()
            rows = await session.execute(_versions(channels))
            for document, chunks, figures, tables, id_, number, arrived_at in rows:
                is_live = chunks is not None
                kept = KeptVersion(id_, number, arrived_at, is_live, chunks or 0, figures or 0, tables)
                versions[document].append(kept)
            for document, moment in await session.execute(_answered(channels)):
                answered[document] = moment
        statuses = [(row.channel_id, status_of(row, folders.get(row.folder_id))) for row in documents]
        return [
            ListedDocument(channel, one, versions[one.document], answered.get(one.document))
            for channel, one in statuses
        ]

    async def progress_of(self, sha256: str, file: str) -> dict[str, Any]:
        """How far the file of this name with these bytes has come, in whichever channel it is the slowest.

        ``state`` is as in a document's status, ``waiting`` also while no scan has taken the file; ``rung``
        says what of it can be found; ``is_last`` that no more will be read.

        Raises:
            storage.errors.DatabaseUnavailable: nobody knows just now.
        """
        seen = overview()
        of = select(col(VersionRow.document_id)).where(col(VersionRow.sha256) == sha256)
        query = select(seen).where(seen.c.document_id.in_(of), seen.c.file == file, seen.c.state != "deleted")
        async with self._database.snapshot() as session:
            found = [_progress(row, sha256) for row in await session.execute(query)]
        known = min(found, key=lambda one: _STEPS.index(one["state"]), default={"state": "waiting"})
        is_last = known.get("rung") == self._catalog.stops_at
        return {"rung": None, "reason": None, **known, "is_last": is_last}


_STEPS = ("quarantined", "waiting", "reading", "live")


def _progress(row: Row[Any], sha256: str) -> dict[str, Any]:
    status = status_of(row)
    if status.state == "live" and status.version != sha256:
        state = "quarantined" if row.has_failed else "reading"
        return {"state": state, "reason": status.reason}
    return {"state": status.state, "rung": status.rung, "reason": status.reason}


def _versions(channels: Collection[int]) -> Select[UUID, int, int, int | None, int, int, datetime]:
    """Versions of the channels' documents, newest first, with what answers of them."""
    return (
        select(
            col(VersionRow.document_id),
            col(ReadingRow.chunks),
            col(ReadingRow.figures),
            col(ReadingRow.details)["tables"].as_integer(),
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
        .where(col(DocumentRow.channel_id).in_(channels), col(DocumentRow.state) != "deleted")
        .order_by(col(VersionRow.number).desc())
    )


def _answered(channels: Collection[int]) -> Select[UUID, datetime]:
    """When something of a document was last shown, wherever that was."""
    return (
        select(col(VersionRow.document_id), func.max(CitationRow.created_at))
        .join(VersionRow, col(VersionRow.id) == CitationRow.version_id)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.channel_id).in_(channels))
        .group_by(col(VersionRow.document_id))
    )
