"""Observes the home: live documents, SQL and index state, and their inconsistencies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from harness.waiting import ready
from machine_folders import BY_SHA256, Paper
from machine_home import MachineHome
from sqlalchemy import select

from storage.embeddings.base import Embedder
from storage.errors import StorageError, UnknownChannel, UnknownTenant
from storage.files.local_cache import SHARDS
from storage.index.base import Hit
from storage.index.live_index import LiveIndex, SearchHits
from storage.models import Channel, LivePublication, TenantName
from storage.queues.inventory import Inventory
from storage.queues.publication_queue import ExpectedPublication
from storage.sql.tables import DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow
from storage.text.analyzer import analyze

MOST_CHUNKS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """The live content of a document."""

    channel: str
    file: str
    publication: UUID
    version_id: int
    sha256: str
    # True if every chunk of it was found.
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder's row and its documents that are not deleted."""

    id: int
    channel_id: int
    location: str
    watched: bool
    asked: frozenset[UUID]
    approved: frozenset[UUID]
    documents: dict[str, UUID]
    # Documents, deleted ones included, that are or ever were live.
    answered: frozenset[UUID]


class Witness:
    """A reader of a home that bypasses fault injection."""

    def __init__(self, home: MachineHome, channels: tuple[str, ...]) -> None:
        self._home = home
        self._channels = channels

    async def ask(self, word: str = "rule") -> dict[UUID, Answer]:
        """Return the live content of every document with a word; "rule" is in all papers."""
        found: dict[UUID, Answer] = {}
        for name in self._channels:
            try:
                channel = await self._home.channels.by_name(name)
            except UnknownChannel:
                continue
            found |= _answers(name, await self.find(channel, word))
        return found

    async def find(self, channel: Channel, word: str, embedder: Embedder | None = None) -> SearchHits:
        """Search as a question does: by words, and by vector if its embedder is given."""
        vector = None if embedder is None else ready((await embedder.aembed([word]))[0].tolist())
        space = "none" if embedder is None else embedder.space
        live = LiveIndex(self._home.real_index, self._home.catalog, space)
        return await live.search(channel, analyze(word), vector, limit=MOST_CHUNKS)

    async def folders(self) -> dict[int, Folder]:
        """Return every folder from SQL."""
        async with self._home.database.snapshot() as session:
            rows = list(await session.scalars(select(FolderRow)))
            documents = list(await session.scalars(select(DocumentRow)))
            ever = select(VersionRow.document_id).join(PublicationRow)
            answered = set(await session.scalars(ever.where(PublicationRow.live_at.is_not(None))))
        inside: defaultdict[int, dict[str, UUID]] = defaultdict(dict)
        for one in documents:
            if one.state != "deleted":
                inside[one.folder_id][one.file] = one.id
        return {
            row.id: Folder(
                row.id,
                row.channel_id,
                row.location,
                row.watched,
                frozenset(map(UUID, row.asked or ())),
                frozenset(map(UUID, row.approved or ())),
                inside[row.id],
                frozenset(one.id for one in documents if one.folder_id == row.id and one.id in answered),
            )
            for row in rows
        }

    async def holders(self, sha256: str) -> set[UUID]:
        """Return all documents that have or had these bytes, deleted ones included."""
        query = select(VersionRow.document_id).where(VersionRow.sha256 == sha256)
        async with self._home.database.snapshot() as session:
            return set(await session.scalars(query))

    async def compare_links(
        self, answering: Mapping[UUID, Answer], ended: Mapping[UUID, Answer]
    ) -> list[str]:
        """Return links to live documents that fail, and links to deleted ones that work."""
        faults = []
        for document, answer in [*answering.items(), *ended.items()]:
            source = await self._home.catalog.version_source(answer.version_id)
            is_right = source is not None and (source.document_id, source.sha256) == (document, answer.sha256)
            if source is None or not is_right or source.is_deleted is not (document in ended):
                faults.append(f"a link to {answer} opens {source}")
        return faults

    async def compare_with_disk(self) -> list[str]:
        """Return orphaned blobs and readings on disk, and missing blobs, after all grace periods."""
        wanted = select(VersionRow.sha256).join(DocumentRow).where(DocumentRow.state != "deleted")
        async with self._home.database.snapshot() as session:
            blobs = set(await session.scalars(wanted))
            readings = {str(one) for one in await session.scalars(select(ReadingRow.id))}
        held = self._home.blobs.listed(SHARDS).keys()
        left = (await self._home.files.listed(SHARDS)).keys() - readings
        return [f"blob {one} lies there for nobody, or is missing" for one in blobs ^ held] + [
            f"the files of reading {one} lie there for nobody" for one in left
        ]

    async def unrest(self) -> str | None:
        """Return the pending work according to SQL, or None."""
        async with self._home.database.snapshot() as session:
            waiting = list(await session.scalars(select(ReadingRow).where(ReadingRow.state == "waiting")))
            pending = list(
                await session.scalars(select(PublicationRow).where(PublicationRow.state == "pending"))
            )
        return f"{waiting} {pending}" if waiting or pending else None

    async def is_in_index(self, tenant: TenantName, publication: UUID) -> bool:
        """True if the index holds any part of a publication."""
        try:
            return publication in await self._home.real_index.publications(tenant)
        except UnknownTenant:
            return False

    async def is_known(self, publication: UUID) -> bool:
        """True if SQL still needs a publication, or may restore it."""
        async with self._home.database.snapshot() as session:
            row = await session.get(PublicationRow, publication)
        return row is not None and row.state != "removed"

    async def compare_with_index(self) -> list[str]:
        """Return differences between index and SQL: missing, incomplete, surplus, without vectors."""
        sql, faults = Inventory(self._home.database), []
        for tenant, channel_id in (await sql.tenants()).items():
            try:
                held = await self._home.real_index.publications(tenant)
            except UnknownTenant:
                held = {}
            live = await sql.live(channel_id)
            faults += [
                f"{one} lacks objects: {held.get(one.id)}" for one in live if held.get(one.id) != one.objects
            ]
            faults += [fault for one in live if (fault := await self._lacks(one))]
            kept = await self._retired(channel_id)
            faults += [f"{one} is a stray" for one in held.keys() - {one.id for one in live} - kept]
        return faults

    async def _lacks(self, one: ExpectedPublication) -> str | None:
        """Return what the index lost of a publication, vectors included."""
        index = self._home.real_index
        try:
            await index.commit_publication(
                one.tenant, one.id, chunks=one.objects, vectors=one.vectors, space=one.space
            )
        except StorageError as error:
            return str(error)
        return None

    async def _retired(self, channel_id: int) -> set[UUID]:
        query = select(PublicationRow.id).where(
            PublicationRow.channel_id == channel_id, PublicationRow.state == "retired"
        )
        async with self._home.database.snapshot() as session:
            return set(await session.scalars(query))

    async def live_twice(self) -> list[UUID]:
        """Return documents with more than one live publication, deleted ones included."""
        query = (
            select(VersionRow.document_id)
            .join(PublicationRow, PublicationRow.version_id == VersionRow.id)
            .where(PublicationRow.state == "live")
        )
        async with self._home.database.snapshot() as session:
            documents = list(await session.scalars(query))
        return [one for one in set(documents) if documents.count(one) > 1]


def _answers(channel: str, found: SearchHits) -> dict[UUID, Answer]:
    """Return answers by document; fail on half a document or on two contents of one."""
    hits: defaultdict[UUID, list[Hit]] = defaultdict(list)
    for hit in found.words:
        hits[hit.publication].append(hit)
    answers: dict[UUID, Answer] = {}
    for publication, live in found.publications.items():
        assert live.document_id not in answers, "two publications of one document answer"
        paper = BY_SHA256.get(live.sha256)
        assert paper is not None, "a content answers that cannot be read"
        _require_own_words(paper, hits[publication])
        answers[live.document_id] = _answer(channel, live, len(hits[publication]))
    return answers


def _require_own_words(paper: Paper, hits: list[Hit]) -> None:
    words = {one.word for one in BY_SHA256.values() for hit in hits if str(one.word) in hit.text}
    assert words == {paper.word}, f"a chunk of another content answers: {words} for {paper.word}"


def _answer(channel: str, live: LivePublication, chunks: int) -> Answer:
    return Answer(channel, live.file, live.id, live.version_id, live.sha256, chunks == live.chunks)
