"""Routes of the API; one table says what each takes and returns, for aiohttp and for OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar
from uuid import UUID

from aiohttp import BodyPartReader, web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ValidationError

from bot.answers.citations.signed_links import Links
from bot.chat.conversation.live_updates import live_updates
from bot.core.plaintext import without_markers
from bot.uploads.file_host import FileDownload
from bot.web import security
from bot.web.api.access import Access
from bot.web.api.api_service import ApiService
from bot.web.api.models import (
    MAX_CHANNEL_CHARS,
    AnswerView,
    AskRequest,
    DocumentListing,
    DocumentView,
    FeedbackRequest,
    PartialAnswer,
    PassageView,
    SearchRequest,
    SearchResults,
    StoredCitation,
    UploadedFile,
)
from bot.web.api.openapi import JSON, Operation, openapi_document
from bot.web.api.problems import ApiError, render_problems
from bot.web.middleware import API_PATH, log_failure
from bot.web.page_images import PageImages
from bot.web.viewer.viewer import PICTURES
from storage.chat.notification_events import UPLOADS_FOLDER
from storage.errors import DocumentError, InfrastructureError

EVENT_STREAM = "text/event-stream"
# Interval between partial answers of a stream.
EVENT_SECONDS = 0.1
CHUNK_BYTES = 1 << 18
_DOCUMENT = r"/documents/{document:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}}"
_CITATION = r"/citations/{citation:\d{1,16}}"

Request_ = TypeVar("Request_", bound=BaseModel)

OPERATIONS = (
    Operation(
        "ask",
        "POST",
        "/ask",
        "Answer a question, with sources; as server-sent events if the client accepts only these",
        body=AskRequest,
        replies={JSON: AnswerView, EVENT_STREAM: None},
        problems=(400, 413, 415, 422, 429),
    ),
    Operation(
        "search",
        "POST",
        "/search",
        "Find passages, without an answer",
        body=SearchRequest,
        replies={JSON: SearchResults},
        problems=(400, 413, 415, 422, 429),
    ),
    Operation(
        "list_documents",
        "GET",
        "/documents",
        "List a channel's documents with their state",
        has_channel=True,
        replies={JSON: DocumentListing},
        problems=(422,),
    ),
    Operation(
        "upload_document",
        "POST",
        "/documents",
        "Upload a file; it can be found as soon as it is read",
        has_file=True,
        has_channel=True,
        status=202,
        replies={JSON: UploadedFile},
        problems=(400, 409, 413, 415, 422),
    ),
    Operation(
        "delete_document",
        "DELETE",
        _DOCUMENT,
        "Delete a document that was uploaded",
        has_channel=True,
        status=204,
        problems=(403, 422),
    ),
    Operation(
        "citation",
        "GET",
        _CITATION,
        "Return a citation with a new link",
        replies={JSON: StoredCitation},
    ),
    Operation(
        "citation_picture",
        "GET",
        f"{_CITATION}/picture",
        "Return the picture of a cited page, without marks",
        replies={"image/png": None, "image/jpeg": None},
    ),
    Operation(
        "feedback",
        "POST",
        "/feedback",
        "Say whether an answer was good",
        body=FeedbackRequest,
        status=204,
        problems=(400, 413, 415, 422),
    ),
)


class HttpApi:
    """Handlers of the API, thin over ``ApiService``."""

    def __init__(self, service: ApiService, images: PageImages, links: Links) -> None:
        self._service = service
        self._images = images
        self._links = links

    def application(self) -> web.Application:
        """Return the API as an application to be mounted under ``API_PATH``."""
        app = web.Application(middlewares=[render_problems])
        handlers: dict[str, Handler] = {
            "ask": self.ask,
            "search": self.search,
            "list_documents": self.list_documents,
            "upload_document": self.upload,
            "delete_document": self.delete,
            "citation": self.show_citation,
            "citation_picture": self.send_picture,
            "feedback": self.take_feedback,
        }
        app.add_routes([web.get("/openapi.json", self.describe, name="api_openapi")])
        app.add_routes(
            web.route(one.method, one.path, handlers[one.id], name=f"api_{one.id}") for one in OPERATIONS
        )
        return app

    async def describe(self, request: web.Request) -> web.Response:
        """Return the OpenAPI document; it needs no token."""
        await self._service.access.require_enabled()
        server = f"{self._links.public_url}{API_PATH}"
        said = openapi_document(OPERATIONS, server, self._service.question_chars)
        return web.json_response(said, headers=security.NO_STORE)

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Answer one question."""
        access, asked = await self._read(request, AskRequest)
        accepted = request.headers.get("Accept", "")
        if EVENT_STREAM in accepted and JSON not in accepted:
            return await self._stream(request, access, asked)
        return _json(await self._answer(access, asked))

    async def search(self, request: web.Request) -> web.Response:
        """Find passages."""
        access, asked = await self._read(request, SearchRequest)
        channel, found = await self._service.search(access, asked)
        return _json(SearchResults(channel=channel.name, passages=[PassageView.of(one) for one in found]))

    async def list_documents(self, request: web.Request) -> web.Response:
        """List a channel's documents."""
        access = await self._service.access.require(request)
        channel, documents = await self._service.documents(access, _channel(request))
        listed = [DocumentView.of(one) for one in documents]
        return _json(DocumentListing(channel=channel.name, documents=listed))

    async def upload(self, request: web.Request) -> web.Response:
        """Store the file of a form."""
        access = await self._service.access.require(request)
        channel = await self._service.access.channel(access, _channel(request))
        if request.content_type != "multipart/form-data":
            raise ApiError(415)
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.name == "file":
                media_type = part.headers.get("Content-Type", "")
                download = FileDownload(part.filename or "", media_type, 0, _chunks(part))
                upload = await self._service.upload(access, channel, download)
                file = f"{UPLOADS_FOLDER}/{upload.name}"
                return _json(UploadedFile(channel=channel.name, file=file, sha256=upload.sha256), 202)
        raise ApiError(422, "The form has no part named file.")

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a document that was uploaded."""
        access = await self._service.access.require(request)
        await self._service.delete(access, _channel(request), UUID(request.match_info["document"]))
        return web.Response(status=204, headers=security.NO_STORE)

    async def show_citation(self, request: web.Request) -> web.Response:
        """Return a citation with a new link."""
        access = await self._service.access.require(request)
        shown = await self._service.citation(access, int(request.match_info["citation"]))
        return _json(
            StoredCitation(
                id=shown.record.id,
                document=shown.source.document_id,
                title=shown.source.title,
                file=shown.source.file,
                page=shown.record.page,
                quote=shown.record.quote,
                boxes=shown.record.boxes,
                url=shown.url,
            )
        )

    async def send_picture(self, request: web.Request) -> web.Response:
        """Return the picture of a cited page."""
        access = await self._service.access.require(request)
        shown = await self._service.citation(access, int(request.match_info["citation"]))
        dpi, part = PICTURES["1x"]
        sha256, page = shown.source.sha256, shown.record.page
        try:
            image = await self._images.image(sha256, page, dpi, clip=part, holder=access.actor)
        except (DocumentError, InfrastructureError, OSError):
            raise ApiError(503) from None
        return web.Response(body=image.data, content_type=image.media_type, headers=security.NO_STORE)

    async def take_feedback(self, request: web.Request) -> web.Response:
        """Store feedback on an answer."""
        access, said = await self._read(request, FeedbackRequest)
        await self._service.feedback(access, said)
        return web.Response(status=204, headers=security.NO_STORE)

    async def _read(self, request: web.Request, model: type[Request_]) -> tuple[Access, Request_]:
        """Return the caller, and the body of its request."""
        access = await self._service.access.require(request)
        if request.content_type != JSON:
            raise ApiError(415)
        try:
            return access, model.model_validate_json(await request.read())
        except ValidationError as error:
            raise ApiError.of_validation(error) from None

    async def _answer(self, access: Access, asked: AskRequest) -> AnswerView:
        done = await self._service.ask(access, asked)
        return AnswerView.of(done.answer, done.id, done.channel.name)

    async def _stream(self, request: web.Request, access: Access, asked: AskRequest) -> web.StreamResponse:
        """Send each beginning of the answer as an event, and the answer or a problem as the last one."""
        question = await self._service.question(access, asked.channel, asked.question)
        response = web.StreamResponse(headers=security.NO_STORE | {"Content-Type": EVENT_STREAM})
        await response.prepare(request)

        async def send(event: str, value: BaseModel) -> None:
            await response.write(f"event: {event}\ndata: {value.model_dump_json()}\n\n".encode())

        async def send_beginning(text: str) -> None:
            await send("beginning", PartialAnswer(text=without_markers(text)))

        try:
            async with live_updates(send_beginning, EVENT_SECONDS) as listener:
                done = await self._service.answer(access, question, asked.thread, listener)
            await send("answer", AnswerView.of(done.answer, done.id, done.channel.name))
        except ConnectionError:
            pass  # the client has gone
        except ApiError as error:
            await send("problem", error.problem)
        except (InfrastructureError, TimeoutError):
            await send("problem", ApiError(503).problem)
        except Exception as error:  # the status has been sent: the error becomes the last event
            log_failure(request, error)
            await send("problem", ApiError(500).problem)
        return response


def _channel(request: web.Request) -> str | None:
    """Return the channel in the query; anything else in it is a mistake."""
    if unknown := request.query.keys() - {"channel"}:
        raise ApiError(422, f"The query has unknown parameters: {len(unknown)}. It may have channel only.")
    name = request.query.get("channel")
    if name is not None and len(name) > MAX_CHANNEL_CHARS:
        raise ApiError(422)
    return name


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(CHUNK_BYTES):
        yield bytes(chunk)


def _json(value: BaseModel, status: int = 200) -> web.Response:
    body = value.model_dump_json().encode()
    return web.Response(status=status, body=body, content_type=JSON, headers=security.NO_STORE)
