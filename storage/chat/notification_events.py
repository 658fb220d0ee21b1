"""Records what people are to be notified of, in the very transaction that makes it true.

Each event is announced once, whatever is repeated: a second row of the same key is never made.
``storage/chat/notifications.py`` hands events out in batches, ``bot/core/notifications`` posts them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any
from uuid import UUID

from sqlalchemy import exists, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from storage.clock import utc_now
from storage.models import Rung
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import (
    DocumentRow,
    FolderRow,
    NoticeRow,
    PublicationRow,
    ReadingRow,
    UploadRow,
    VersionRow,
    WebPageRow,
)

UPLOADS_FOLDER = "uploads"
"""In a channel's folder of the inbox: what people uploaded in the chat lies there."""
STRANGER_KEY = "stranger:"
"""Begins the key of a notice about a file that is no document: the folder's id, a colon, the file."""


async def record_live(session: AsyncSession, publication: PublicationRow) -> None:
    """A version answers in a channel; announced when it does so for the first time."""
    version = await session.get_one(VersionRow, publication.version_id)
    upload = await upload_of(session, version.document_id)
    key = f"live:{publication.channel_id}:{version.id}"
    await _record_notice(
        session,
        kind="live",
        key=key if upload is None else f"{key}:{upload}",  # uploaded again, it gets a receipt again
        channel_id=publication.channel_id,
        document_id=version.document_id,
        version_id=version.id,
        upload_id=upload,
    )


async def record_return(session: AsyncSession, document: UUID) -> None:
    """A deleted document answers again; announced where somebody uploaded it anew."""
    if await upload_of(session, document) is None:
        return
    live = (
        select(PublicationRow)
        .join(VersionRow, col(VersionRow.id) == PublicationRow.version_id)
        .where(col(VersionRow.document_id) == document, col(PublicationRow.state) == "live")
    )
    for publication in await session.scalars(live):
        await record_live(session, publication)


async def record_failed(session: AsyncSession, contents: Collection[str]) -> None:
    """Some of these contents cannot be read; announced for every file that has one now, and once for each."""
    other = aliased(ReadingRow)  # some generation has read the content, or is about to try
    may_yet_be_read = exists().where(
        col(other.sha256) == VersionRow.sha256, col(other.state).in_(("waiting", "done"))
    )
    query = (
        select(VersionRow, DocumentRow, ReadingRow)
        .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
        .join(ReadingRow, col(ReadingRow.sha256) == VersionRow.sha256)
        .where(col(VersionRow.sha256).in_(contents), col(DocumentRow.state) != "deleted")
        .where(col(ReadingRow.state) == "failed", col(ReadingRow.rung) == Rung.QUICK.value)
        .where(col(VersionRow.number) == newest_number(VersionRow), ~may_yet_be_read)
        .order_by(col(ReadingRow.created_at).desc())
    )
    for version, document, reading in (await session.execute(query)).all():
        await _record_notice(
            session,
            kind="failed",
            key=f"failed:{version.id}",
            channel_id=document.channel_id,
            document_id=document.id,
            version_id=version.id,
            text=reading.reason,
            upload_id=await upload_of(session, document.id),
        )


async def record_refused(session: AsyncSession, document: DocumentRow, reason: str) -> None:
    """The bytes of a file could not even be stored; announced once per reason until a new version came."""
    await session.flush()
    newest = select(func.max(VersionRow.number)).where(col(VersionRow.document_id) == document.id)
    number = await session.scalar(newest) or 0
    digest = blake2b(reason.encode(), digest_size=8).hexdigest()
    await _record_notice(
        session,
        kind="failed",
        key=f"refused:{document.id}:{number}:{digest}",
        channel_id=document.channel_id,
        document_id=document.id,
        text=reason,
        upload_id=await upload_of(session, document.id),
    )


async def record_folder(session: AsyncSession, folder_id: int, problem: str | None) -> None:
    """A folder's problem, or its end; call it before the folder's row says so."""
    folder = await session.get_one(FolderRow, folder_id)
    if folder.problem != problem:
        await _record_notice(
            session, kind="folder", channel_id=folder.channel_id, folder_id=folder_id, text=problem
        )


async def record_strangers(session: AsyncSession, folder: FolderRow, strangers: Mapping[str, str]) -> None:
    """Files of a folder that are not read, with the reason; each is announced once."""
    for file, reason in strangers.items():
        await _record_notice(
            session,
            kind="stranger",
            key=f"{STRANGER_KEY}{folder.id}:{file}",
            channel_id=folder.channel_id,
            folder_id=folder.id,
            text=reason,
        )


async def record_source_failed(session: AsyncSession, page: WebPageRow, channel_id: int) -> None:
    """A web page has failed for long; announced once until it was fetched again.

    ``channel_id``: one whose questions may open it.
    """
    await _record_notice(
        session,
        kind="source failed",
        key=f"source failed:{page.failing_since}:{page.url}",
        channel_id=channel_id,
        url=page.url,
        text=page.error,
    )


async def record_source_changed(session: AsyncSession, page: WebPageRow, channel_id: int, quote: str) -> None:
    """A quote that a channel was shown stands on its web page no more; announced once per text of it."""
    await _record_notice(
        session,
        kind="source changed",
        key=f"source changed:{channel_id}:{page.sha256}:{page.url}",
        channel_id=channel_id,
        url=page.url,
        text=quote,
    )


async def record_welcome(session: AsyncSession, channel_id: int) -> None:
    """We joined a channel; announced once, and again only where the first announcement was refused."""
    key = f"welcome:{channel_id}"
    await _record_notice(session, kind="welcome", key=key, channel_id=channel_id)
    refused = update(NoticeRow).where(col(NoticeRow.key) == key, col(NoticeRow.state) == "dropped")
    await session.execute(refused.values(state="waiting", batch=None, told_in=None, created_at=utc_now()))


async def record_digests(database: Database, channels: Collection[int], week: str) -> None:
    """A week of these channels is over; each is told once of what its documents did not answer."""
    for channel_id in channels:
        async with database.transaction(exclusive=False) as session:
            await _record_notice(
                session, kind="digest", key=f"digest:{week}:{channel_id}", channel_id=channel_id
            )


async def upload_of(session: AsyncSession, document: UUID) -> int | None:
    """The upload that a document is; None of one that came another way."""
    query = (
        select(col(UploadRow.id))
        .join(DocumentRow, col(DocumentRow.channel_id) == UploadRow.channel_id)
        .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
        .where(col(DocumentRow.id) == document, col(FolderRow.origin) == "inbox")
        .where(col(DocumentRow.file) == f"{UPLOADS_FOLDER}/" + col(UploadRow.name))
    )
    found: int | None = await session.scalar(query)
    return found


async def _record_notice(session: AsyncSession, **values: Any) -> None:
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    row = insert(NoticeRow).values(state="waiting", created_at=utc_now(), **values)
    await session.execute(row.on_conflict_do_nothing(index_elements=["key"]))
