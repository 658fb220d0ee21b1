"""Catalog of documents: their current state, read from SQL.

Used by searches (what is live), links (which version they open) and progress displays.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    CompoundSelect,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    func,
    or_,
    select,
    union,
)
from sqlmodel import col

from storage.documents.document_status import folder_states, overview, recent_documents, status_of
from storage.documents.progress import Progress, in_channel, measure_progress
from storage.models import DocumentStatus, LivePublication, MetadataField, Rung, VersionSource, load_metadata
from storage.queues.index_rebuilds import IndexRebuilds
from storage.sql.database import Database
from storage.sql.document_state import details_of, document_state, live_version
from storage.sql.tables import DocumentRow, PublicationRow, ReadingRow, VersionRow

# LRU cache size for parsed metadata: some megabytes.
METADATA_CACHE_SIZE = 1000


class Catalog:
    """Read-only queries on the state of documents."""

    def __init__(self, database: Database, last_rung: Rung = Rung.FULL) -> None:
        """Read from ``database``; readings of this home end at the rung ``last_rung``."""
        self._database = database
        self._rebuilds = IndexRebuilds(database)
        # Last rung that readings reach.
        self.last_rung = last_rung

    async def hidden(self, channel_id: int) -> frozenset[UUID]:
        """Return publications that must not be shown: pending, retired, or of a deleted document."""
        rows = await self._database.rows(_hidden(), {"channel": channel_id})
        return frozenset(row[0] for row in rows)

    async def live(self, channel_id: int, ids: Collection[UUID]) -> dict[UUID, LivePublication]:
        """Return those of ``ids`` that are live in this channel now."""
        rows = await self._database.rows(_live_of(), {"channel": channel_id, "ids": list(ids)}, brief=True)
        return {row.id: _live_publication(row) for row in rows}

    async def live_document(self, channel_id: int, document: UUID) -> LivePublication | None:
        """Return the live publication of a document of this channel; None if there is none."""
        rows = await self._database.rows(_live_document(), {"channel": channel_id, "of": document})
        return _live_publication(rows[0]) if rows else None

    async def live_versions(self, channel_id: int, versions: Collection[int]) -> list[LivePublication]:
        """Return the live publications of these versions in this channel."""
        query = _live_rows().where(col(VersionRow.id).in_(versions))
        return await self._publications(query, channel_id)

    async def live_by_name(
        self, channel_id: int, titles: Collection[str], files: Collection[str]
    ) -> list[LivePublication]:
        """Return live publications with one of these titles or file names.

        A title may be the file's, the printed one, or an admin's correction.
        """
        names = {"titles": list(titles), "files": list(files)}
        return await self._publications(_namesakes(), channel_id, **names)

    async def _publications(self, query: Any, channel_id: int, **values: Any) -> list[LivePublication]:
        rows = await self._database.rows(query, {"channel": channel_id, **values})
        return [_live_publication(row) for row in rows]

    async def rebuild_count(self, channel_id: int) -> int:
        """Return how often a rebuild of the channel's index began or ended; odd while one is running."""
        return await self._rebuilds.sequence(channel_id)

    async def has_live(self, channel_id: int) -> bool:
        """True if the channel has a live publication."""
        return bool(await self._database.rows(_any_live(), {"channel": channel_id}))

    async def live_names(self, channel_id: int) -> list[tuple[UUID, str]]:
        """Return (reading, title and file name without suffix) of each live document."""
        rows = await self._database.rows(_live_names(), {"channel": channel_id})
        return sorted((row.reading_id, f"{row.title or ''} {PurePosixPath(row.file).stem}") for row in rows)

    async def documents(self, channel_id: int) -> list[DocumentStatus]:
        """Return all documents of the channel by file name, including deleted ones."""
        async with self._database.snapshot() as session:
            folders = await folder_states(session, channel_id)
            rows = await session.execute(_documents(), {"channel": channel_id})
            return [status_of(row, folders.get(row.folder_id)) for row in rows]

    async def active_documents(self, channel_id: int) -> list[DocumentStatus]:
        """Return the documents of the channel by file name, without the deleted ones."""
        async with self._database.snapshot() as session:
            folders = await folder_states(session, channel_id)
            rows = await session.execute(_undeleted(), {"channel": channel_id})
            return [status_of(row, folders.get(row.folder_id)) for row in rows]

    async def recent(self, channel_id: int, limit: int) -> list[DocumentStatus]:
        """Return a few unreadable files, then a few of the newest."""
        query = recent_documents(channel_id, limit)
        async with self._database.snapshot() as session:
            folders = await folder_states(session, channel_id)
            rows = (await session.execute(query)).all()
        rows = sorted(rows, key=lambda row: (row.state != "quarantined", -(row.newest_id or 0), row.file))
        return [status_of(row, folders.get(row.folder_id)) for row in rows]

    async def version_source(self, version_id: int) -> VersionSource | None:
        """Return the version that a link opens; None if it does not exist."""
        query = (
            document_state.add_columns(VersionRow, DocumentRow, ReadingRow, col(live_version.number))
            .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
            .outerjoin(
                ReadingRow, (col(ReadingRow.sha256) == VersionRow.sha256) & (col(ReadingRow.state) == "done")
            )
            .where(col(VersionRow.id) == version_id)
            .order_by(col(ReadingRow.done_at).desc())
            .limit(1)
        )
        async with self._database.snapshot() as session:
            row = (await session.execute(query)).first()
        return _source(*row) if row else None

    async def progress(self, channel_id: int | None = None) -> Progress:
        """Return the progress of one channel, or of all; deleted documents do not count."""
        scopes = None if channel_id is None else [in_channel(channel_id)]
        async with self._database.snapshot() as session:
            return await measure_progress(session, scopes, self.last_rung)


@cache
def _documents() -> Select[Any]:
    """Return the overview of ``:channel``.

    Cached, because building the statement takes as long as executing it.
    """
    seen = overview()
    return select(seen).where(seen.c.channel_id == bindparam("channel")).order_by(seen.c.file)


@cache
def _undeleted() -> Select[Any]:
    """Return the overview of ``:channel`` without deleted documents; cached, as above."""
    return _documents().where(overview().c.state != "deleted")


@cache
def _hidden() -> CompoundSelect[Any]:
    """Return the publications of ``:channel`` that must not be shown; cached, as above."""
    here = select(col(PublicationRow.id)).where(col(PublicationRow.channel_id) == bindparam("channel"))
    unseen = here.where(col(PublicationRow.state).in_(("pending", "retired")))
    of_deleted = (
        select(col(VersionRow.id))
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .where(col(DocumentRow.channel_id) == bindparam("channel"), col(DocumentRow.state) == "deleted")
    )
    deleted = here.where(col(PublicationRow.state) == "live", col(PublicationRow.version_id).in_(of_deleted))
    return union(unseen, deleted)  # not an OR or a join: these would visit every live publication


@cache
def _live_of() -> Any:
    """Return those of ``:ids`` that are live in ``:channel``; cached, as above."""
    return _live_rows().where(col(PublicationRow.id).in_(bindparam("ids", expanding=True)))


@cache
def _live_document() -> Any:
    """Return the live publication of document ``:of`` in ``:channel``; cached, as above."""
    return _live_rows().where(col(DocumentRow.id) == bindparam("of"))


@cache
def _namesakes() -> Any:
    """Return live publications with one of ``:titles`` or ``:files`` in ``:channel``; cached, as above."""
    titles: BindParameter[str] = bindparam("titles", expanding=True)
    path = col(DocumentRow.file)
    printed = details_of(VersionRow)[("metadata", "title", 0)].as_string()
    corrected = col(VersionRow.corrected)["title"].as_string()
    is_titled = [one.in_(titles) for one in (col(ReadingRow.title), printed, corrected)]
    name = func.replace(path, func.rtrim(path, func.replace(path, "/", "")), "")
    is_file = name.in_(bindparam("files", expanding=True))
    return _live_rows().where(or_(*is_titled, is_file))


@cache
def _live_names() -> Any:
    """Return reading, title and file of live publications in ``:channel``; cached, as above."""
    named: tuple[Any, ...] = (
        col(ReadingRow.id).label("reading_id"),
        col(ReadingRow.title),
        col(DocumentRow.file),
    )
    return _live_rows().with_only_columns(*named, maintain_column_froms=True)


@cache
def _any_live() -> Any:
    """Return one live publication of ``:channel``; cached, as above."""
    return _live_rows().limit(1)


def _live_rows() -> Any:
    """Return the live publications of documents that are not deleted, with only the columns needed."""
    return (
        select(
            col(PublicationRow.id),
            col(PublicationRow.channel_id),
            col(DocumentRow.id).label("document_id"),
            col(DocumentRow.file),
            col(VersionRow.id).label("version_id"),
            col(VersionRow.sha256),
            cast(col(VersionRow.corrected), Text).label("corrected"),
            col(VersionRow.created_at).label("arrived_at"),
            col(ReadingRow.id).label("reading_id"),
            col(ReadingRow.rung),
            col(ReadingRow.title),
            col(ReadingRow.pages),
            col(ReadingRow.chunks),
            col(ReadingRow.figures),
            col(ReadingRow.space),
            cast(details_of(VersionRow), Text).label("details"),
        )
        .select_from(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .join(ReadingRow, col(ReadingRow.id) == PublicationRow.reading_id)
        .where(col(PublicationRow.state) == "live", col(DocumentRow.state) != "deleted")
        .where(col(PublicationRow.channel_id) == bindparam("channel"))
    )


def _live_publication(row: Row[Any]) -> LivePublication:
    metadata, ocr_pages, anchors = _described(row.details, row.corrected)
    return LivePublication(
        id=row.id,
        channel_id=row.channel_id,
        document_id=row.document_id,
        version_id=row.version_id,
        reading_id=row.reading_id,
        sha256=row.sha256,
        rung=Rung(row.rung),
        file=row.file,
        title=row.title or PurePosixPath(row.file).name,
        pages=row.pages,
        chunks=row.chunks,
        figures=row.figures,
        space=row.space,
        metadata=metadata,
        ocr_pages=ocr_pages,
        arrived_at=row.arrived_at,
        anchors=anchors,
    )


@lru_cache(maxsize=METADATA_CACHE_SIZE)
def _described(
    details: str | None, corrected: str | None
) -> tuple[Mapping[str, MetadataField], frozenset[int], tuple[str, ...] | None]:
    """Parse (metadata, pages read by OCR, anchors); cached, as questions meet the same documents."""
    printed, said = (json.loads(one or "null") or {} for one in (details, corrected))
    anchors = printed.get("anchors")
    pages = frozenset(printed.get("ocr_pages", ()))
    return load_metadata(printed, said), pages, None if anchors is None else tuple(anchors)


def _source(
    version: VersionRow,
    document: DocumentRow,
    reading: ReadingRow | None,
    newest_live: int | None,
) -> VersionSource:
    details = (reading.details if reading else None) or {}
    return VersionSource(
        version_id=version.id,
        channel_id=document.channel_id,
        document_id=document.id,
        sha256=version.sha256,
        file=document.file,
        title=(reading.title if reading else "") or PurePosixPath(document.file).name,
        pages=reading.pages if reading else 0,
        reading_id=reading.id if reading else None,
        number=version.number,
        newest_number=newest_live or version.number,
        is_deleted=document.state == "deleted",
        metadata=load_metadata(details, version.corrected or {}),
        ocr_pages=frozenset(details.get("ocr_pages", ())),
    )
