"""PDFs uploaded in chats: their owners, and quotas per channel and installation.

Each is stored in ``uploads/`` of its channel's inbox folder, where ingestion finds it like any other file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.chat.notification_events import UPLOADS_FOLDER
from storage.chat_models import NewUpload, Upload, UploadQuota, UploadRefusal
from storage.sql.audit import AuditedAction, record_action
from storage.sql.database import Database
from storage.sql.document_state import newest_number
from storage.sql.tables import IS_PRESENT, ChannelRow, DocumentRow, FolderRow, UploadRow, VersionRow

# Chooses a file's name, given the names already in use.
ChooseName = Callable[[Collection[str]], str]


class UploadedDocument(NamedTuple):
    """Document made from an upload."""

    folder_id: int
    id: UUID
    file: str


class Uploads:
    """Stores uploads and their owners.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, channel_id: int, key: str) -> Upload | None:
        """Return the upload of a message's file; None if there is none."""
        async with self._database.snapshot() as session:
            row = await session.scalar(select(UploadRow).filter_by(channel_id=channel_id, key=key))
        return _upload(row) if row else None

    async def of_channel(self, channel_id: int) -> list[Upload]:
        """Return a channel's uploads, oldest first."""
        async with self._database.snapshot() as session:
            return [_upload(row) for row in await _rows(session, channel_id)]

    async def keep(
        self, new: NewUpload, choose_name: ChooseName, quota: UploadQuota
    ) -> Upload | tuple[UploadRefusal, str]:
        """Record an upload before its file is stored; an existing one is returned.

        Returns:
            The upload with its name; or the reason of a refusal, with the file that already has its bytes.
        """
        async with self._database.transaction() as session:
            rows = await _rows(session, new.channel_id)
            if (same := next((row for row in rows if row.key == new.key), None)) is not None:
                return _upload(same)
            if (known := await _file_with(session, new, rows)) is not None:
                return UploadRefusal.KNOWN, known
            if len(rows) >= quota.files:
                return UploadRefusal.TOO_MANY, ""
            if sum(row.size for row in rows) + new.size > quota.size:
                return UploadRefusal.TOO_LARGE, ""
            if not await _fits_installation(session, new, quota.per_installation):
                return UploadRefusal.INSTALLATION_FULL, ""
            row = UploadRow(
                channel_id=new.channel_id,
                key=new.key,
                uploader=new.uploader,
                name=choose_name([row.name for row in rows]),
                sha256=new.sha256,
                size=new.size,
                address=new.address,
            )
            session.add(row)
            await session.flush()
            return _upload(row)

    async def document(self, upload: Upload) -> UploadedDocument | None:
        """Return the document made from an upload; None before a scan finds it, or if it is deleted."""
        file = f"{UPLOADS_FOLDER}/{upload.name}"
        query = (
            select(col(DocumentRow.folder_id), col(DocumentRow.id), col(DocumentRow.file))
            .join(FolderRow, col(FolderRow.id) == DocumentRow.folder_id)
            .where(col(DocumentRow.channel_id) == upload.channel_id, col(DocumentRow.file) == file)
            .where(col(FolderRow.origin) == "inbox", text(f"document.{IS_PRESENT}"))
        )
        async with self._database.snapshot() as session:
            row = (await session.execute(query)).first()
        return UploadedDocument(*row) if row else None

    async def address(self, upload: int) -> dict[str, Any] | None:
        """Return where to post an upload's receipt; None if it was removed."""
        async with self._database.snapshot() as session:
            row = await session.get(UploadRow, upload)
        return row.address if row else None

    async def forget(self, upload: Upload, action: AuditedAction | None = None) -> None:
        """Delete an upload whose file is gone; ``action`` is recorded with it."""
        async with self._database.transaction() as session:
            await session.execute(delete(UploadRow).where(col(UploadRow.id) == upload.id))
            if action:
                await record_action(session, action)


async def _rows(session: AsyncSession, channel_id: int) -> list[UploadRow]:
    own = select(UploadRow).where(col(UploadRow.channel_id) == channel_id)
    return list(await session.scalars(own.order_by(col(UploadRow.id))))


async def _fits_installation(session: AsyncSession, new: NewUpload, quota: UploadQuota) -> bool:
    """True if the quota of the channel's installation allows the upload; a library's channel has none."""
    own = await session.get_one(ChannelRow, new.channel_id)
    if not own.installation:
        return True
    held = (
        select(func.count(), func.coalesce(func.sum(col(UploadRow.size)), 0))
        .join(ChannelRow, col(ChannelRow.id) == UploadRow.channel_id)
        .where(col(ChannelRow.platform) == own.platform, col(ChannelRow.installation) == own.installation)
    )
    files, size = (await session.execute(held)).one()
    return bool(files < quota.files and size + new.size <= quota.size)


async def _file_with(session: AsyncSession, new: NewUpload, rows: Collection[UploadRow]) -> str | None:
    """Return the channel's file with the same bytes: another upload, or any document."""
    if (same := next((row for row in rows if row.sha256 == new.sha256), None)) is not None:
        return same.name
    query = (
        select(col(DocumentRow.file))
        .join(VersionRow, col(VersionRow.document_id) == DocumentRow.id)
        .where(col(DocumentRow.channel_id) == new.channel_id, col(VersionRow.sha256) == new.sha256)
        .where(col(VersionRow.number) == newest_number(), text(f"document.{IS_PRESENT}"))
        .limit(1)
    )
    file: str | None = await session.scalar(query)
    return file.rpartition("/")[2] if file else None


def _upload(row: UploadRow) -> Upload:
    return Upload(row.id, row.channel_id, row.uploader, row.name, row.sha256, row.size, row.created_at)
