"""Use cases of programs, shared by HTTP and MCP: ask, search, documents, citations, feedback.

Every call is given the caller's access. Things of channels that it does not open do not exist for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

from bot.answers.citations.citations import CitationService
from bot.answers.citations.signed_links import Links
from bot.chat.conversation.memory import answer_in_thread
from bot.chat.conversation.queue_limits import QuestionOrigin, QuestionRateLimiter
from bot.core.models import Answer, AnswerState, Language, Question
from bot.core.plaintext import replace_invalid_chars
from bot.core.ports import AnswerListener, FoundPassage, QuestionAnswering, SearchPassages
from bot.core.wording import reply_words
from bot.settings import Settings
from bot.uploads.file_checks import UploadKnown, UploadRejected, UploadTooLarge
from bot.uploads.file_host import FileDownload
from bot.uploads.upload_intake import UploadIntake, remove_upload
from bot.web.api.access import Access, AccessControl
from bot.web.api.models import AskRequest, FeedbackRequest, SearchRequest
from bot.web.api.problems import ApiError
from storage.chat.feedback import hash_person
from storage.chat.uploads import Uploads
from storage.chat_models import Upload
from storage.errors import UnknownChannel
from storage.installations.api_tokens import ApiTokens
from storage.models import Channel, CitationRecord, DocumentStatus, LivePublication, VersionSource
from storage.sql.audit import AuditedAction, AuditLog
from storage.stores import Stores

NOT_UPLOADED = "It was not uploaded here but lies in a watched folder: remove it there."
UNWRITABLE = "The folder of uploads can't be written to."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AskedAnswer:
    """Answer with the id of its question."""

    id: str
    channel: Channel
    answer: Answer


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """Document that answers, with its publication."""

    channel: Channel
    status: DocumentStatus
    publication: LivePublication


@dataclass(frozen=True, slots=True)
class OpenedPage:
    """Page of a document, with a new link."""

    document: LiveDocument
    page: int
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class ShownCitation:
    """Citation with its document, and a new link."""

    record: CitationRecord
    source: VersionSource
    url: str


class ApiService:
    """Serves programs on one home.

    Calls raise ``ApiError`` for what a caller may not do or did wrong, and
    ``storage.errors.InfrastructureError`` or TimeoutError if an engine does not work.
    """

    def __init__(
        self,
        answering: QuestionAnswering,
        search: SearchPassages,
        stores: Stores,
        links: Links,
        settings: Settings,
        *,
        uploads: UploadIntake | None = None,
    ) -> None:
        """Create the service.

        Args:
            answering: stores the records of its answers.
            settings: limits are those of chats; beyond a rate limit a question is refused.
            uploads: accepts uploads; None: there are none.
        """
        self.question_chars = settings.bot.question_chars
        self.access = AccessControl(ApiTokens(stores.database), stores.channels)
        self._answering = answering
        self._search = search
        self._stores = stores
        self._citations = CitationService(stores.citations, links, stores.catalog)
        self._links = links
        self._intake = uploads
        self._uploads = Uploads(stores.database)
        self._audit = AuditLog(stores.database)
        self._inbox = settings.inbox
        self._rates = QuestionRateLimiter(settings.bot)
        self._slots = asyncio.Semaphore(settings.bot.questions_at_once)

    async def ask(
        self, access: Access, asked: AskRequest, listener: AnswerListener | None = None
    ) -> AskedAnswer:
        """Answer a question; in a thread, earlier questions of the same caller are its context."""
        question = await self.question(access, asked.channel, asked.question)
        return await self.answer(access, question, asked.thread, listener)

    async def question(self, access: Access, channel: str | None, text: str) -> Question:
        """Return a question after checking its length and the rate limits, and count it."""
        text = replace_invalid_chars(text).strip()
        if not text or len(text) > self.question_chars:
            raise ApiError(422, f"A question has 1 to {self.question_chars} characters.")
        where = await self.access.channel(access, channel)
        origin = QuestionOrigin(access.actor, where.tenant, where.installation)
        if self._rates.is_beyond(origin):
            raise ApiError(429)
        self._rates.count(origin)
        return Question(uuid4().hex, text, where, datetime.now(UTC), asker=access.actor)

    async def answer(
        self,
        access: Access,
        question: Question,
        thread: str | None,
        listener: AnswerListener | None = None,
    ) -> AskedAnswer:
        """Answer a question that ``question`` returned."""
        name = thread and f"{access.actor} {replace_invalid_chars(thread)}"
        async with self._slots:
            answer = await answer_in_thread(self._answering, self._stores.memory, question, name, listener)
        if answer.state is AnswerState.FAILED:
            raise ApiError(503, answer.text)
        return AskedAnswer(question.id, question.channel, answer)

    async def search(self, access: Access, asked: SearchRequest) -> tuple[Channel, Sequence[FoundPassage]]:
        """Return the channel and the passages found, best first; this counts as a question."""
        question = await self.question(access, asked.channel, asked.query)
        async with self._slots:
            return question.channel, await self._search(question, asked.limit)

    async def documents(self, access: Access, channel: str | None) -> tuple[Channel, list[DocumentStatus]]:
        """Return a channel and its documents, by file name."""
        where = await self.access.channel(access, channel)
        return where, await self._stores.catalog.active_documents(where.id)

    async def upload(self, access: Access, channel: Channel, download: FileDownload) -> Upload:
        """Store a file in the channel's folder of uploads, within its quota."""
        if self._intake is None:
            raise ApiError(404)
        words = reply_words(Language.ENGLISH)
        try:
            upload = await self._intake.add(
                channel, download, key=uuid4().hex, uploader=access.actor, words=words
            )
        except UploadTooLarge as refused:
            raise ApiError(413, str(refused)) from None
        except UploadKnown as refused:
            raise ApiError(409, str(refused)) from None
        except UploadRejected as refused:
            raise ApiError(422, str(refused)) from None
        await self._audit.record(AuditedAction(access.actor, "upload", channel.tenant, upload.sha256))
        return upload

    async def delete(self, access: Access, channel: str | None, document: UUID) -> None:
        """Remove a document that was uploaded, in a chat or by a program."""
        where, documents = await self.documents(access, channel)
        found = next((one for one in documents if one.document == document), None)
        if found is None:
            raise ApiError(404)
        for upload in await self._uploads.of_channel(where.id):
            made = await self._uploads.document(upload)
            if made is not None and made.id == document:
                break
        else:
            raise ApiError(403, NOT_UPLOADED)
        action = AuditedAction(access.actor, "remove upload", where.tenant, str(upload.id))
        try:
            await remove_upload(
                where,
                upload,
                inbox=self._inbox,
                uploads=self._uploads,
                folders=self._stores.folders,
                action=action,
            )
        except OSError as error:
            log.warning("could not delete upload: upload=%d: %s", upload.id, type(error).__name__)
            raise ApiError(503, UNWRITABLE) from None

    async def citation(self, access: Access, citation_id: int) -> ShownCitation:
        """Return a citation with a new link; a revoked one does not exist."""
        record = await self._stores.citations.get(citation_id)
        if record is None or record.revoked_at is not None:
            raise ApiError(404)
        try:
            channel = await self._stores.channels.get(record.channel_id)
        except UnknownChannel:
            raise ApiError(404) from None
        source = await self._stores.catalog.version_source(record.version_id)
        if not access.opens(channel) or source is None or source.is_deleted:
            raise ApiError(404)
        return ShownCitation(record, source, self._links.page_url(channel, record))

    async def page(self, access: Access, channel: str | None, document: str, number: int) -> OpenedPage:
        """Return the text of a page of a live document, given by its id, or its file as citations name it."""
        live = await self._live(access, channel, document)
        if not 1 <= number <= live.publication.pages:
            raise ApiError(404)
        try:
            page = await self._stores.readings.page(live.publication.reading_id, number)
        except LookupError:
            raise ApiError(404) from None
        return OpenedPage(live, number, page.text, await self._open_page(live, number))

    async def text(self, access: Access, channel: str | None, document: str) -> tuple[str, Sequence[str]]:
        """Return a link to the first page of a live document, and the texts of its pages."""
        live = await self._live(access, channel, document)
        texts = await self._stores.readings.page_texts(live.publication.reading_id)
        return await self._open_page(live, 1), texts

    async def all_documents(self, access: Access) -> list[tuple[Channel, DocumentStatus]]:
        """Return the live documents of every channel that the caller may use."""
        channels = [one for one in await self._stores.channels.all() if access.opens(one)]
        return [
            (channel, one)
            for channel in channels
            for one in await self._stores.catalog.active_documents(channel.id)
            if one.state == "live"
        ]

    async def _live(self, access: Access, channel: str | None, document: str) -> LiveDocument:
        where, documents = await self.documents(access, channel)
        for one in documents:
            if document in (str(one.document), one.file):
                if live := await self._stores.catalog.live_document(where.id, one.document):
                    return LiveDocument(where, one, live)
        raise ApiError(404)

    async def _open_page(self, live: LiveDocument, number: int) -> str:
        return await self._citations.open_page(live.channel, live.publication.version_id, number)

    async def feedback(self, access: Access, said: FeedbackRequest) -> None:
        """Store feedback on an answer of one of the caller's channels."""
        where = await self.access.channel(access, said.channel)
        person = hash_person(*access.person)
        if not await self._stores.feedback.upsert(
            where.id, said.question, person, said.verdict, comment=replace_invalid_chars(said.comment)
        ):
            raise ApiError(404, "There is no answer with this id, or it is no longer stored.")
