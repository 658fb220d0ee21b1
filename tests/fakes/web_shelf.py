"""Approved web pages that are live, written directly into tables, reading files and an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import select, update
from sqlmodel import col

from storage.documents.catalog import Catalog
from storage.embeddings.base import Embedder
from storage.files.reading_files import ReadingFiles
from storage.index.base import IndexedChunk, document_facet
from storage.index.embedded.index import EmbeddedIndex
from storage.index.live_index import LiveIndex
from storage.models import METADATA_KEY, Chunk, MetadataField, Page, Rung, dump_metadata
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, PublicationRow, ReadingRow, VersionRow
from storage.text.analyzer import index_terms
from storage.web_pages.page_store import WebPageStore


@dataclass(frozen=True)
class PageChunk:
    """A chunk of a page below a heading."""

    text: str
    heading_path: tuple[str, ...] = ()
    anchor: str = ""


class WebShelf:
    """Publishes pages as fetching, reading and publishing would."""

    def __init__(self, database: Database, home: Path, space: str = "terms") -> None:
        self._database = database
        self._files = ReadingFiles(home / "readings")
        self._index = EmbeddedIndex(home / "index", 10)
        self.store = WebPageStore(database, self._files)
        self.search = LiveIndex(self._index, Catalog(database), space)

    async def publish(
        self,
        url: str,
        *texts: PageChunk | str,
        title: str = "",
        day: str = "",
        embedder: Embedder | None = None,
    ) -> int:
        """Make a page answer with these chunks in place of earlier ones; return the version's id."""
        chunks = [PageChunk(one) if isinstance(one, str) else one for one in texts]
        dated = [MetadataField("last_updated", day, None, (), day)] if day else []
        details = {"anchors": [one.anchor for one in chunks], METADATA_KEY: dump_metadata(dated)}
        sha256, folder = uuid4().hex * 2, await self.store.folder()
        reading = ReadingRow(
            sha256=sha256, generation="g", rung=Rung.FULL, state="done", title=title, pages=1,
            chunks=len(chunks), space=embedder.space if embedder else None, details=details,
        )  # fmt: skip
        await self.store.mark_read(url, sha256, sum(len(one.text.split()) for one in chunks), {})
        here = select(DocumentRow).where(
            col(DocumentRow.folder_id) == folder.id, col(DocumentRow.file) == url
        )
        async with self._database.transaction() as session:
            document = await session.scalar(here)
            document = document or DocumentRow(channel_id=folder.channel_id, folder_id=folder.id, file=url)
            versions = select(VersionRow).where(col(VersionRow.document_id) == document.id)
            earlier = list(await session.scalars(versions))
            version = VersionRow(document_id=document.id, number=len(earlier) + 1, sha256=sha256)
            for row in (BlobRow(sha256=sha256, size=1), document, version, reading):
                session.add(row)
                await session.flush()
            replaced = update(PublicationRow).where(
                col(PublicationRow.version_id).in_([one.id for one in earlier])
            )
            await session.execute(replaced.values(state="retired"))
            live = PublicationRow(channel_id=folder.channel_id, version_id=version.id, reading_id=reading.id)
            live.state = "live"
            session.add(live)
            await session.flush()
            identity = document.id, version.id, reading.id, live.id
        document_id, version_id, reading_id, publication = identity
        facet = document_facet(document_id)
        await self._write(
            title, chunks, reading=reading_id, publication=publication, facet=facet, embedder=embedder
        )
        return version_id

    async def _write(
        self,
        title: str,
        chunks: Sequence[PageChunk],
        *,
        reading: UUID,
        publication: UUID,
        facet: str,
        embedder: Embedder | None,
    ) -> None:
        tenant = (await self.store.channel()).tenant
        kept = [
            Chunk(number, one.text, len(one.text.split()), one.heading_path, (), ((0, 1),))
            for number, one in enumerate(chunks)
        ]
        await self._files.write(reading, [Page(1, "", 1, 1, "", ())], kept, None)
        vectors = await embedder.aembed([one.text for one in chunks]) if embedder else None
        await self._index.ensure_tenant(tenant)
        await self._index.write(
            tenant,
            [
                IndexedChunk(
                    publication, one.ordinal, index_terms(title, one.heading_path, one.text), one.text, 1, 1,
                    one.heading_path, (facet,),
                    None if vectors is None else vectors[one.ordinal].tolist(),
                    embedder.space if embedder else None,
                )
                for one in kept
            ],
        )  # fmt: skip

    async def aclose(self) -> None:
        """Close the index."""
        await self._index.aclose()
