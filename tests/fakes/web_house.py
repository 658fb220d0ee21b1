"""A whole web side on real parts: SQLite, blobs, readings and the PDF process; only answers are scripted."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from aiohttp import web
from aiohttp.test_utils import TestClient
from sqlalchemy import func, select, update
from sqlmodel import col

from bot.answers.citations.signed_links import KeyRing, Links
from bot.answers.trace import QuestionRecord, Trace
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.console_secret import console_address
from bot.core.models import Answer, AnswerState, Citation, Question
from bot.core.ports import AnswerListener, FoundPassage
from bot.settings import Settings
from bot.uploads.upload_intake import UploadIntake, UploadPolicy, UploadRules
from bot.web.api.api_service import ApiService
from bot.web.page_images import PageImages
from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.chat.feedback import FeedbackStore
from storage.chat.glossary import GLOSSARY_NAME, GlossaryFile
from storage.chat.notifications import Notices
from storage.chat.retention import Retention
from storage.chat.thread_memory import ThreadMemory
from storage.chat.traces import QuestionRecords
from storage.chat.uploads import Uploads
from storage.chat_models import UploadQuota
from storage.documents.catalog import Catalog
from storage.documents.vocabulary import Vocabularies
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.folders.folder_passwords import FolderPasswords
from storage.folders.folders import Folders
from storage.models import Channel, ChannelKey, Chunk, CitationRecord, CitedPlace, Page, Platform
from storage.pdf.models import PdfText
from storage.pdf.pdf_process import PdfProcess
from storage.queues.reading_repair import SelfHealingReadings
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow
from storage.stores import Stores
from storage.text.word_boxes import bounding_boxes, main_page
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

WIDTH, HEIGHT = 612, 792
# Courier 12: every character is exactly 7.2 points wide, so that positions are known.
LEFT, TOP, SIZE, LEADING = 72, 720, 12, 20
ADVANCE = 7.2
CONSOLE_SECRET = "a-secret-that-opens-the-console-of-tests"
# Header of an API client with the console secret.
SIGNED_IN = {"Authorization": f"Bearer {CONSOLE_SECRET}"}


# Cache of readings by content: many tests use the same one.
_readings: dict[str, PdfText] = {}

DONE = {"generation": "test", "rung": "full", "state": "done"}


def console_of(client: TestClient) -> str:
    """Return the URL that opens the console in a browser, as ``serve`` prints it."""
    return console_address(str(client.make_url("")).rstrip("/"), CONSOLE_SECRET)


def make_pdf(pages: Sequence[Sequence[str]], labels: str = "") -> bytes:
    """Return a PDF with lines of Courier at known positions: from LEFT, TOP downwards, LEADING apart."""
    objects = [f"<</Type/Catalog/Pages 2 0 R{labels}>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Courier>>"]
    for lines in pages:
        shown = " ".join(f"({line}) Tj 0 -{LEADING} Td" for line in lines)
        stream = f"BT /F1 {SIZE} Tf {LEFT} {TOP} Td {shown} ET"
        objects.append(f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream")
        number = len(objects)
        box = f"/MediaBox[0 0 {WIDTH} {HEIGHT}]/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}/Contents {number} 0 R>>")
    kids = " ".join(f"{number} 0 R" for number in range(5, len(objects) + 1, 2))
    objects[1] = f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"
    return _assemble(objects)


def make_form_bomb() -> bytes:
    """Return a page whose rendering never ends: ten forms, each drawing the next one ten times."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    box = f"/MediaBox[0 0 {WIDTH} {HEIGHT}]"
    objects.append(f"<</Type/Page/Parent 2 0 R{box}/Resources<</XObject<</X 5 0 R>>>>/Contents 4 0 R>>")
    objects.append("<</Length 5>>\nstream\n/X Do\nendstream")
    for depth in range(10):
        drawn = "/X Do " * 10 if depth < 9 else "0 0 9 9 re f"
        below = f"/XObject<</X {depth + 6} 0 R>>" if depth < 9 else ""
        head = f"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<<{below}>>/Length {len(drawn)}>>"
        objects.append(f"{head}\nstream\n{drawn}\nendstream")
    return _assemble(objects)


def _assemble(objects: Sequence[str]) -> bytes:
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    tail = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + (head + tail).encode()


@dataclass(frozen=True, slots=True)
class Shelved:
    """A document version of the house."""

    document: UUID
    version: int
    reading: UUID
    sha256: str
    pages: tuple[Page, ...]


@dataclass
class ScriptedAnswering:
    """Gives each question its scripted answer."""

    answers: dict[str, Answer | Exception] = field(default_factory=dict)
    # Query -> the passages found.
    passages: dict[str, Sequence[FoundPassage]] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)
    # Partial texts shown before each answer.
    beginnings: tuple[str, ...] = ()
    # Cleared by a test that inspects partial text: blocks the answer.
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_end.set()

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the scripted answer, or "not found"."""
        self.asked.append(question)
        scripted = self.answers.get(
            question.text, Answer(AnswerState.NOT_FOUND, "That is not in your documents.")
        )
        for beginning in self.beginnings if listener else ():
            listener.show(beginning)
            await asyncio.sleep(0.3)
        await asyncio.sleep(0)
        await self.may_end.wait()
        if isinstance(scripted, Exception):
            raise scripted
        return scripted

    async def search(self, question: Question, limit: int) -> Sequence[FoundPassage]:
        """Return the scripted passages."""
        self.asked.append(question)
        return self.passages.get(question.text, ())[:limit]

    async def trace(self, question: Question) -> QuestionRecord:
        """Return the scripted answer with an empty trace."""
        return QuestionRecord(question, await self.answer(question), Trace(8))


class House:
    """All services behind the web side, filled by the tests."""

    def __init__(self, home: Path, database: Database, renderer: PdfProcess) -> None:
        self.home = home
        self.database = database
        self.renderer = renderer
        self.answering = ScriptedAnswering()
        self.channels = Channels(database)
        self.blobs = Blobs(home / "blobs")
        self.readings = ReadingFiles(home / "readings")
        self.citations = Citations(database)
        self.catalog = Catalog(database)
        self.folders = Folders(database)
        self.memory = ThreadMemory(database, 30)
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.keys = KeyRing(home / "link_keys.json")
        self.public_url = "http://127.0.0.1"

    @property
    def stores(self) -> Stores:
        """Stores that links are checked against."""
        settings = StorageSettings(home=self.home)
        return Stores(
            settings=settings,
            database=self.database,
            channels=self.channels,
            catalog=self.catalog,
            vocabularies=Vocabularies(self.catalog, self.readings),
            citations=self.citations,
            memory=self.memory,
            records=QuestionRecords(self.database, 30),
            feedback=FeedbackStore(self.database),
            retention=Retention(self.database, settings),
            store=None,
            blobs=self.blobs,
            files=self.readings,
            readings=SelfHealingReadings(self.readings, self.database),
            folders=self.folders,
            passwords=FolderPasswords(self.database, ()),
            glossary=GlossaryFile(self.home / GLOSSARY_NAME),
            notices=Notices(self.database),
            web_sources=WebSourcesFile(self.home),
            web_pages=WebPageStore(self.database, ReadingFiles(self.home / "readings")),
        )

    @property
    def links(self) -> Links:
        """Links that live seven days by this house's clock."""
        return Links(self.keys, self.public_url, timedelta(days=7), lambda: self.now)

    def api(self, settings: Settings) -> ApiService:
        """Return the service for programs, whose uploads go to the house's inbox."""
        uploads = UploadIntake(
            Uploads(self.database),
            self.channels,
            DirectLibraries(self.channels),
            self.catalog,
            self.home / "inbox",
            rules=UploadRules(UploadPolicy("off"), UploadQuota(2, 1 << 20), settings.storage.max_file_mb),
            hosts={},
        )
        return ApiService(
            self.answering,
            self.answering.search,
            self.stores,
            self.links,
            settings,
            uploads=uploads,
        )

    def images(self, megabytes: int = 512) -> PageImages:
        """Return the page renderer, with a cache limit."""
        return PageImages(self.blobs, self.renderer, megabytes * 1024 * 1024)

    async def channel(self, name: str) -> Channel:
        """Return a local channel."""
        return await self.channels.ensure(ChannelKey(Platform.LOCAL, "", name))

    async def shelve(
        self,
        channel: Channel,
        file: str,
        pdf: bytes,
        title: str = "",
        replaces: Shelved | None = None,
        *,
        headings: Sequence[str] = (),
    ) -> Shelved:
        """Store, read and publish a PDF, as ingestion would; with headings, each page becomes a chunk."""
        sha256 = hashlib.sha256(pdf).hexdigest()
        temporary = self.blobs.new_temporary()
        temporary.write_bytes(pdf)
        blob = self.blobs.adopt(temporary, sha256)
        if sha256 not in _readings:
            _readings[sha256] = await self.renderer.read(blob)
        read = _readings[sha256]
        reading = uuid4()
        chunks = [
            Chunk(place, page.text, 1, (heading,), page.words, ((0, page.number),))
            for place, (page, heading) in enumerate(zip(read.pages, headings, strict=False))
        ]
        await self.readings.write(reading, read.pages, chunks, None)
        document, version = await self._record(channel, file, sha256, replaces)
        row = ReadingRow(id=reading, sha256=sha256, title=title or file, pages=len(read.pages), **DONE)
        await self._publish(channel, version, row, replaces)
        return Shelved(document, version, reading, sha256, read.pages)

    async def cite(self, channel: Channel, shelved: Shelved, page: int, quote: str) -> CitationRecord:
        """Cite a quote of a page with its boxes, without a number."""
        return await self.keep(channel, _shown(shelved, page, quote))

    async def cite_answer(
        self, channel: Channel, *quotes: tuple[Shelved, int, str]
    ) -> Sequence[CitationRecord]:
        """Cite the quotes (document, page, text) of one answer, numbered from 1."""
        shown = [_shown(*quote, number) for number, quote in enumerate(quotes, 1)]
        return await self.citations.add(channel.id, shown)

    async def keep(self, channel: Channel, shown: CitedPlace) -> CitationRecord:
        """Cite `shown` unchanged."""
        (record,) = await self.citations.add(channel.id, [shown])
        return record

    def answer(self, text: str, *cited: tuple[Channel, CitationRecord, str, str]) -> Answer:
        """Return a grounded answer; each of `cited` is (channel, citation, title, file)."""
        citations = tuple(
            Citation(
                number,
                title,
                file,
                record.page,
                record.quote,
                record.boxes,
                self.links.page_url(channel, record),
                record.version_id,
            )
            for number, (channel, record, title, file) in enumerate(cited, 1)
        )
        return Answer(AnswerState.GROUNDED, text, citations)

    async def _record(
        self, channel: Channel, file: str, sha256: str, replaces: Shelved | None
    ) -> tuple[UUID, int]:
        async with self.database.transaction() as session:
            await session.merge(BlobRow(sha256=sha256, size=1))
            if replaces is None:
                folder = FolderRow(channel_id=channel.id, location=f"/{channel.name}/{file}", watched=True)
                session.add(folder)
                await session.flush()
                document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file=file)
                session.add(document)
                await session.flush()
                identity, number = document.id, 1
            else:
                newest = select(func.max(VersionRow.number))
                earlier = newest.where(col(VersionRow.document_id) == replaces.document)
                identity, number = replaces.document, 1 + (await session.scalar(earlier) or 0)
            version = VersionRow(document_id=identity, number=number, sha256=sha256)
            session.add(version)
            await session.flush()
            return identity, version.id

    async def _publish(
        self, channel: Channel, version: int, reading: ReadingRow, replaces: Shelved | None
    ) -> None:
        now = datetime.now(UTC)
        reading.done_at = now
        ids = {"channel_id": channel.id, "version_id": version, "reading_id": reading.id}
        async with self.database.transaction() as session:
            session.add(reading)
            await session.flush()
            if replaces is not None:
                earlier = col(PublicationRow.version_id) == replaces.version
                await session.execute(update(PublicationRow).where(earlier).values(state="retired"))
            session.add(PublicationRow(state="live", live_at=now, **ids))


def _shown(shelved: Shelved, page: int, quote: str, number: int | None = None) -> CitedPlace:
    text, words = shelved.pages[page - 1].text, shelved.pages[page - 1].words
    start = text.index(quote)
    boxes = bounding_boxes(words, start, start + len(quote))
    assert main_page(words, start, start + len(quote)) == page
    return CitedPlace(shelved.version, page, quote, boxes[page], number)


class Visit(Protocol):
    """Starts the web side on a house and returns a client."""

    async def __call__(
        self, *, ready: bool = True, extra_routes: Sequence[web.RouteDef] = (), **settings: object
    ) -> TestClient:
        """Start it; other keywords are settings of the bot."""
