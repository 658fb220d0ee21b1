"""Page browser of the console: any page of any stored version, with a chunk's bounding boxes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from aiohttp import web

from bot.web import security
from bot.web.page_images import PageImages
from bot.web.security import require_visitor
from bot.web.templates import Templates
from bot.web.viewer.page_view import citation_line, make_chunk_view
from bot.web.viewer.search_page import SearchPage, redirect_to_page
from bot.web.viewer.viewer import PICTURE_PATH, PICTURES
from storage.errors import DocumentError, InfrastructureError, UnknownChannel
from storage.models import Box, VersionSource, metadata_line
from storage.stores import Stores
from storage.text.word_boxes import bounding_boxes

# Holder for fair turns, beside the holders of links.
CONSOLE = "console"
# Path of a version, or of a chunk of one of its readings.
_BASE = r"/console/pages/{version:\d{1,18}}{chunk:(?:/[0-9a-f]{32}-\d{1,6})?}"


@dataclass(frozen=True, slots=True)
class MarkedChunk:
    """Chunk that is marked on the pages of a version."""

    text: str
    # First page, counted from 1.
    page: int
    # Page -> bounding boxes.
    boxes: Mapping[int, Sequence[Box]]


class PageBrowser:
    """Page viewer for console users, who need no signed link."""

    def __init__(self, stores: Stores, images: PageImages, templates: Templates, search: SearchPage) -> None:
        self._stores = stores
        self._images = images
        self._templates = templates
        self._search = search

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the browser."""
        return [
            web.get(_BASE + r"{page:(?:/\d{1,6})?}", self.show, name="admin_page"),
            web.get(_BASE + PICTURE_PATH, self.send_image, name="admin_page_image"),
            web.get(_BASE + "/search", self.search, name="admin_page_search"),
            web.get(_BASE + "/go", self.go_to_page, name="admin_page_go"),
            web.get(_BASE + "/file.pdf", self.send_file, name="admin_page_file"),
        ]

    async def show(self, request: web.Request) -> web.Response:
        """Return the page in the path, else the chunk's first page, else page 1."""
        source = await self._source(request)
        chunk = await self._chunk(request)
        home = chunk.page if chunk else 1
        number = int(request.match_info["page"].removeprefix("/") or home)
        if number < 1 or (source.reading_id and number > max(source.pages, home)):
            raise web.HTTPNotFound
        page = None
        if source.reading_id is not None:
            with suppress(InfrastructureError, LookupError):  # the picture suffices without the text
                page = await self._stores.readings.page(source.reading_id, number)
        boxes = chunk.boxes.get(number, ()) if chunk else ()
        found = await self._search.found(request, source, CONSOLE)
        root, base = _root_and_base(request, source)
        return self._templates.page(
            "viewer.html",
            security.VIEWER_HEADERS,
            root=root,
            base=base,
            leaf=make_chunk_view(source, number, home, page, boxes, found=found),
            found=found,
            quotes=(),
            current=0,
            source=source,
            says=metadata_line(source.metadata),
            newer=None,
            is_ocr=number in source.ocr_pages,
            quote=chunk.text if chunk else "",
            is_chunk_gone=bool(request.match_info["chunk"]) and chunk is None,
            citation=citation_line(source, number, page.label if page else ""),
            is_framed=False,
            is_linked=False,
        )

    async def search(self, request: web.Request) -> web.Response:
        """Return the version's hits for the query's ``q``, or its outline without one."""
        source, chunk = await self._source(request), await self._chunk(request)
        home = chunk.page if chunk else 1
        root, base = _root_and_base(request, source)
        values = {"root": root, "base": base, "home": home, "last": max(source.pages, home)}
        return await self._search.show(request, source, CONSOLE, is_linked=False, **values)

    async def go_to_page(self, request: web.Request) -> web.Response:
        """Redirect to the page in the query's ``n``.

        Raises:
            web.HTTPSeeOther: to that page.
            web.HTTPNotFound: ``n`` is not a number.
        """
        raise redirect_to_page(request, (await self._source(request)).pages)

    async def send_image(self, request: web.Request) -> web.Response:
        """Return the picture of a page."""
        source = await self._source(request)
        number, (dpi, part) = int(request.match_info["page"]), PICTURES[request.match_info["picture"]]
        try:
            image = await self._images.image(source.sha256, number, dpi, clip=part, holder=CONSOLE)
        except (DocumentError, InfrastructureError, OSError):
            return self._templates.refusal(503)
        return web.Response(body=image.data, content_type=image.media_type, headers=security.NO_STORE)

    async def send_file(self, request: web.Request) -> web.FileResponse:
        """Return the file."""
        source = await self._source(request)
        blob = await self._stores.blobs.fetch(source.sha256)
        if not await asyncio.to_thread(blob.is_file):
            raise web.HTTPNotFound
        return web.FileResponse(blob, headers=security.document_headers(source.file))

    async def _source(self, request: web.Request) -> VersionSource:
        visitor = require_visitor(request)
        source = await self._stores.catalog.version_source(int(request.match_info["version"]))
        try:
            channel = await self._stores.channels.get(source.channel_id) if source else None
        except UnknownChannel:  # that of web pages, whose pages cannot be drawn
            raise web.HTTPNotFound from None
        if source is None or channel is None or channel.is_direct or not visitor.may_see(channel):
            raise web.HTTPNotFound
        return source

    async def _chunk(self, request: web.Request) -> MarkedChunk | None:
        """Return the chunk in the path, None if there is none or its reading is gone."""
        reading, _, ordinal = request.match_info["chunk"].removeprefix("/").partition("-")
        if not reading:
            return None
        try:
            (chunk,) = await self._stores.readings.chunks_at([(UUID(reading), int(ordinal))])
        except (InfrastructureError, LookupError):
            return None
        return MarkedChunk(chunk.text, chunk.first_page, bounding_boxes(chunk.words, 0, len(chunk.text)))


def _root_and_base(request: web.Request, source: VersionSource) -> tuple[str, str]:
    """Return the relative paths from a page to the application's root, and to the version."""
    root = "../" * (request.path.count("/") - 1)
    return root, f"{root}console/pages/{source.version_id}{request.match_info['chunk']}"
