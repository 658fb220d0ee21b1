"""Documents of all channels: state, metadata and stored versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bot.uploads.upload_places import UploadPlaces
from bot.web.admin.admin_pages import JSON_ENDING, AdminPages, json_page, wants_json
from bot.web.security import require_own_form
from storage.documents.corrections import MAX_VALUE_CHARS, Corrections
from storage.documents.document_overview import DocumentOverview, ListedDocument
from storage.errors import SettingsError
from storage.models import METADATA_FIELDS, Channel, DocumentStatus, metadata_line
from storage.queues.reading_repair import retry_failed
from storage.sql.audit import AuditedAction
from storage.sql.database import Database

Json = dict[str, Any]
STATES = ("live", "reading", "waiting", "quarantined")
# Documents per page; JSON is not paginated.
PAGE_SIZE = 100
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

# Value of the query's ``order`` -> (label, sort key, descending).
ORDERS: dict[str, tuple[str, Callable[[ListedDocument], Any], bool]] = {
    "file": ("file", lambda one: one.status.file.casefold(), False),
    "channel": ("channel", lambda one: one.status.channel.casefold(), False),
    "state": ("state", lambda one: (one.status.state != "quarantined", one.status.state), False),
    "pages": ("most pages", lambda one: one.status.pages, True),
    "arrived": ("newest", lambda one: one.versions[0].arrived_at if one.versions else _LONG_AGO, True),
    "answered": ("last answer", lambda one: one.answered_at or _LONG_AGO, True),
}


class DocumentsPage:
    """List of documents, and a page per document."""

    def __init__(
        self, pages: AdminPages, overview: DocumentOverview, places: UploadPlaces, database: Database
    ) -> None:
        self._pages = pages
        self._overview = overview
        self._places = places
        self._database = database

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the page."""
        document = r"/console/documents/{channel:\d{1,9}}/{document:[0-9a-f-]{36}}"
        return [
            web.get("/console/documents" + JSON_ENDING, self.show, name="admin_documents"),
            web.get(document, self.show_document, name="admin_document"),
            web.post(document, self.correct, name="admin_document_correction"),
            web.post(f"{document}/again", self.read_again, name="admin_documents_again"),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Return the documents filtered by ``channel``, ``state`` and ``q``, sorted by ``order``."""
        channels = await self._pages.channels(request)
        chosen = {name: request.query.get(name, "") for name in ("channel", "state", "q", "order")}
        if len(channels) == 1:
            chosen["channel"] = str(channels[0].id)
        asked = {one.id: one for one in channels if chosen["channel"] in {"", str(one.id)}}
        found = [one for one in await self._overview.of(asked.keys()) if _is_asked_for(one, chosen)]
        _, key, is_falling = ORDERS.get(chosen["order"], ORDERS["file"])
        found.sort(key=key, reverse=is_falling)
        if wants_json(request):
            return json_page([_row(asked[one.channel_id], one) for one in found])
        start = _start(request.query.get("from", ""), len(found))
        shown = found[start : start + PAGE_SIZE]
        return self._pages.show(
            request,
            "documents.html",
            channels=channels,
            chosen=chosen,
            states=STATES,
            orders={name: label for name, (label, _, _) in ORDERS.items()},
            rows=[_row(asked[one.channel_id], one) for one in shown],
            start=start,
            page_size=PAGE_SIZE,
            count=len(found),
            places=await self._places.all(),
        )

    async def read_again(self, request: web.Request) -> web.Response:
        """Retry an unreadable document, then show the list.

        Raises:
            web.HTTPSeeOther: to the list.
        """
        visitor = require_own_form(request)
        channel, found = await self._document(request)
        document = found.status.document
        action = AuditedAction(visitor.actor, "retry", channel.tenant, str(document))
        await retry_failed(self._database, [document], action)
        raise web.HTTPSeeOther(f"../../../documents?channel={channel.id}")

    async def show_document(self, request: web.Request) -> web.Response:
        """Return one document, with a form to correct its metadata."""
        channel, found = await self._document(request)
        return self._show_document(request, channel, found)

    async def correct(self, request: web.Request) -> web.Response:
        """Store the form's corrections of a document's metadata; unchanged fields are skipped.

        Raises:
            web.HTTPSeeOther: to the document.
        """
        visitor = require_own_form(request)
        channel, found = await self._document(request)
        status, form = found.status, await request.post()
        changes = dict(_changes(status, form))
        if changes:
            action = AuditedAction(visitor.actor, "correct", channel.tenant)
            try:
                await Corrections(self._database).correct(channel.id, status.file, changes, action)
            except SettingsError as error:
                return self._show_document(request, channel, found, problem=str(error))
        raise web.HTTPSeeOther(f"./{status.document}")

    def _show_document(
        self, request: web.Request, channel: Channel, found: ListedDocument, problem: str = ""
    ) -> web.Response:
        metadata = found.status.metadata
        fields = [(name, metadata.get(name)) for name in METADATA_FIELDS]
        values = {"row": _row(channel, found), "fields": fields, "problem": problem}
        return self._pages.show(request, "document.html", chars=MAX_VALUE_CHARS, **values)

    async def _document(self, request: web.Request) -> tuple[Channel, ListedDocument]:
        """Return the document in the path, and its channel.

        Raises:
            web.HTTPNotFound: no such document.
        """
        channel, _ = await self._pages.channel(request)
        for one in await self._overview.of([channel.id]):
            if str(one.status.document) == request.match_info["document"]:
                return channel, one
        raise web.HTTPNotFound


def _start(place: str, count: int) -> int:
    """Return the page's offset in the query, counted from 0; 0 if it is missing or out of range."""
    start = int(place) if place.isascii() and place.isdecimal() and len(place) < 7 else 0
    return start if start < count else 0


def _changes(status: DocumentStatus, form: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield (field, new value) of each changed field; None: revert to the printed value."""
    for name in METADATA_FIELDS:
        field = status.metadata.get(name)
        known = " ".join(field.value.split()) if field else ""
        said = " ".join(str(form.get(name, known)).split())
        if form.get(f"{name} printed"):
            yield name, None
        elif said != known:
            yield name, said


def _is_asked_for(one: ListedDocument, chosen: Json) -> bool:
    status = one.status
    texts = (status.file, status.title, *_metadata(one).values())
    is_named = any(chosen["q"].casefold() in text.casefold() for text in texts)
    return chosen["state"] in {"", status.state} and is_named


def _metadata(one: ListedDocument) -> dict[str, str]:
    return {name: field.value for name, field in one.status.metadata.items()}


def _row(channel: Channel, one: ListedDocument) -> Json:
    status, live = one.status, one.live
    metadata = _metadata(one)
    return {
        "channel": channel.name,
        "channel_id": channel.id,
        "document": str(status.document),
        "file": status.file,
        "title": status.title,
        "state": status.state,
        "rung": status.rung.value if status.rung else None,
        "reason": status.reason,
        "can_retry": status.can_retry,
        "pages": status.pages,
        "chunks": live.chunks if live else 0,
        "figures": live.figures if live else 0,
        "tables": live.tables if live else None,
        "language": metadata.get("language"),
        "metadata": metadata,
        "says": metadata_line(status.metadata),
        "versions": list(_versions(one)),
        "answered_at": one.answered_at.isoformat(timespec="seconds") if one.answered_at else None,
    }


def _versions(one: ListedDocument) -> Iterator[Json]:
    for version in one.versions:
        yield {
            "id": version.id,
            "number": version.number,
            "is_live": version.is_live,
            "arrived_at": version.arrived_at.isoformat(timespec="seconds"),
        }
