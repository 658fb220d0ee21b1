"""Document list for operators: state, versions, last citation."""

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
    """A stored version of a document."""

    id: int
    number: int
    arrived_at: datetime
    is_live: bool
    # Counts of the live reading; 0 if there is none.
    chunks: int
    figures: int
    # None if the layout was not analysed, or by a release that did not count tables.
    tables: int | None


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document and its versions."""

    channel_id: int
    status: DocumentStatus
    # Newest first.
    versions: Sequence[KeptVersion]
    # When it was last cited, among the citations still stored.
    answered_at: datetime | None

    @property
    def live(self) -> KeptVersion | None:
        """The live version."""
        return next((one for one in self.versions if one.is_live), None)


class DocumentOverview:
    """Queries the documents of channels."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    async def of(self, channels: Collection[int]) -> list[ListedDocument]:
        """Return the documents of channels by file name, without deleted ones.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not answer.
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
        """Return the progress of the file with this name and content, in the channel where it is slowest.

        ``state`` as in DocumentStatus, and ``waiting`` if no scan has found the file yet; ``rung`` is the
        live rung; ``is_last`` is true if no further reading follows.

        Raises:
            storage.errors.DatabaseUnavailable: the database does not answer.
        """
        seen = overview()
        of = select(col(VersionRow.document_id)).where(col(VersionRow.sha256) == sha256)
        query = select(seen).where(seen.c.document_id.in_(of), seen.c.file == file, seen.c.state != "deleted")
        async with self._database.snapshot() as session:
            found = [_progress(row, sha256) for row in await session.execute(query)]
        known = min(found, key=lambda one: _STEPS.index(one["state"]), default={"state": "waiting"})
        is_last = known.get("rung") == self._catalog.last_rung
        return {"rung": None, "reason": None, **known, "is_last": is_last}


_STEPS = ("quarantined", "waiting", "reading", "live")


def _progress(row: Row[Any], sha256: str) -> dict[str, Any]:
    status = status_of(row)
    if status.state == "live" and status.version != sha256:
        state = "quarantined" if row.has_failed else "reading"
        return {"state": state, "reason": status.reason}
    return {"state": status.state, "rung": status.rung, "reason": status.reason}


def _versions(channels: Collection[int]) -> Select[UUID, int, int, int | None, int, int, datetime]:
    """Return the versions of the channels' documents, newest first, with their live readings."""
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
    """Return when each document was last cited, in any channel."""
    return (
        select(col(VersionRow.document_id), func.max(CitationRow.created_at))
        .join(VersionRow, col(VersionRow.id) == CitationRow.version_id)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.channel_id).in_(channels))
        .group_by(col(VersionRow.document_id))
    )
