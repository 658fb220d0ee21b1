"""Documents in any state, written directly into the tables of one channel."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import update
from sqlmodel import SQLModel, col

from storage.clock import utc_now
from storage.models import Rung
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow


class Shelf:
    """Writes documents in any state into one channel."""

    def __init__(self, database: Database, channel_id: int, folder_id: int) -> None:
        self._database = database
        self.channel_id = channel_id
        self._folder_id = folder_id

    async def add(self, *rows: SQLModel) -> None:
        async with self._database.transaction() as session:
            for row in rows:
                session.add(row)
                await session.flush()

    async def set(self, row: SQLModel, **values: object) -> None:
        table = type(row)
        async with self._database.transaction() as session:
            await session.execute(update(table).where(col(table.id) == row.id).values(**values))

    async def document(self, file: str, **values: object) -> DocumentRow:
        row = DocumentRow(channel_id=self.channel_id, folder_id=self._folder_id, file=file, **values)
        await self.add(row)
        return row

    async def version(self, document: DocumentRow, number: int = 1) -> VersionRow:
        sha256 = uuid4().hex * 2
        row = VersionRow(document_id=document.id, number=number, sha256=sha256)
        await self.add(BlobRow(sha256=sha256, size=1), row)
        return row

    async def reading(self, version: VersionRow, rung: Rung = Rung.QUICK, **values: object) -> ReadingRow:
        fields = {"state": "done", "title": "The Title", "pages": 7, "chunks": 9, **values}
        row = ReadingRow(sha256=version.sha256, generation=f"1-{rung}", rung=rung, **fields)
        if row.state == "done":
            row.done_at = utc_now()
        await self.add(row)
        return row

    async def publication(
        self, version: VersionRow, reading: ReadingRow, state: str = "live"
    ) -> PublicationRow:
        row = PublicationRow(
            channel_id=self.channel_id, version_id=version.id, reading_id=reading.id, state=state
        )
        await self.add(row)
        return row

    async def live(self, file: str, rung: Rung = Rung.QUICK) -> tuple[DocumentRow, PublicationRow]:
        document = await self.document(file)
        version = await self.version(document)
        return document, await self.publication(version, await self.reading(version, rung))
