"""The page behind every source button: the cited page with its passage marked, and the PDF itself.

Every request is checked anew; nothing is kept in the browser and nothing changes on a GET, because
link previews and mail scanners fetch links as well.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from bot.core.errors import LinkEnded
from bot.core.links import Links
from bot.web import headers
from bot.web.images import PageImages
from bot.web.leaf import make_page_view
from bot.web.opening import OpenLink, open_link
from bot.web.pages import Templates
from bot.web.ports import WebStores
from storage.errors import DocumentError, InfrastructureError
from storage.metadata_models import self_description
from storage.models import Page

SCALES = {"1": 132, "2": 220}
"""Dots per inch of the ordinary and the fine picture."""


class Viewer:
    """Serves what a link opens."""

    def __init__(self, links: Links, stores: WebStores, images: PageImages, pages: Templates) -> None:
        self._links = links
        self._stores = stores
        self._images = images
        self._pages = pages

    def routes(self) -> list[web.RouteDef]:
        """The routes of the viewer; HEAD is answered where GET is."""
        return [
            web.get("/v/{token}", self.show_cited_page, name="viewer"),
            web.get(r"/v/{token}/{page:\d{1,6}}", self.show_page, name="viewer_page"),
            web.get(r"/v/{token}/p/{page:\d{1,6}}@{scale:[12]}x", self.send_image, name="viewer_image"),
            web.get("/v/{token}/file.pdf", self.send_file, name="viewer_file"),
        ]

    async def show_cited_page(self, request: web.Request) -> web.Response:
        """The page that was cited."""
        link = await self._open(request)
        return await self._show(request, link, link.claims.page, root="../")

    async def show_page(self, request: web.Request) -> web.Response:
        """Another page of the same version."""
        link = await self._open(request)
        return await self._show(request, link, _page_number(request, link), root="../../")

    async def send_image(self, request: web.Request) -> web.Response:
        """The picture of a page."""
        link = await self._open(request)
        number = _page_number(request, link)
        dpi = SCALES[request.match_info["scale"]]
        try:
            image = await self._images.image(link.source.sha256, self._blob(link), number, dpi)
        except (DocumentError, InfrastructureError, OSError):
            return self._pages.refusal(503)
        return web.Response(body=image.data, content_type=image.media_type, headers=self._kept(link))

    async def send_file(self, request: web.Request) -> web.FileResponse:
        """The PDF itself, inline, whole or in ranges."""
        link = await self._open(request)
        blob = self._blob(link)
        if not await asyncio.to_thread(blob.is_file):
            raise LinkEnded("its file is gone")
        disposition = {"Content-Disposition": headers.inline(link.source.file)}
        file_headers = {**headers.PDF, **self._kept(link), **disposition}
        return web.FileResponse(blob, chunk_size=256 * 1024, headers=file_headers)

    async def _open(self, request: web.Request) -> OpenLink:
        return await open_link(request.match_info["token"], self._links, self._stores)

    async def _show(self, request: web.Request, link: OpenLink, number: int, root: str) -> web.Response:
        leaf = make_page_view(link, number, await self._read(link, number))
        return self._pages.page(
            "viewer.html",
            headers.VIEWER,
            root=root,
            base=f"{root}v/{request.match_info['token']}",
            leaf=leaf,
            source=link.source,
            says=self_description(link.source.metadata),
            is_ocr=number in link.source.ocr_pages,
            quote=link.citation.quote,
            is_framed=request.headers.get("Sec-Fetch-Dest") == "iframe",
        )

    async def _read(self, link: OpenLink, number: int) -> Page | None:
        """The text of a page; without it, picture and marks still show what was quoted."""
        if link.source.reading_id is None:
            return None
        try:
            return await self._stores.readings.page(link.source.reading_id, number)
        except (InfrastructureError, LookupError):
            return None

    def _blob(self, link: OpenLink) -> Path:
        return self._stores.blobs.path(link.source.sha256)

    def _kept(self, link: OpenLink) -> dict[str, str]:
        return headers.kept_for(link.claims.expires - int(self._links.clock().timestamp()))


def _page_number(request: web.Request, link: OpenLink) -> int:
    """The page that a path names.

    Raises:
        web.HTTPNotFound: the version has no such page.
    """
    number = int(request.match_info["page"])
    if number != link.claims.page and not 1 <= number <= link.source.pages:
        raise web.HTTPNotFound
    return number
