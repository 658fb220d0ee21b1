"""The page behind every source button: the cited page with its passage marked, and the PDF itself.

Every request checks its link anew, the signature first, then SQL. Nothing is kept in the browser and nothing
changes on a GET, because link previews and mail scanners fetch links as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from aiohttp import web

from bot.core.citations.signed_links import LinkClaims, Links
from bot.core.errors import LinkEnded
from bot.web import security
from bot.web.page_images import PageImages
from bot.web.templates import Templates
from storage.errors import DocumentError, InfrastructureError, UnknownChannel
from storage.models import Box, Channel, CitationRecord, Page, PlacedWord, VersionSource, self_description
from storage.stores import Stores

_BASELINE = 0.22
"""Share of a word's box that hangs below its base line."""

SCALES = {"1": 132, "2": 220}
"""Dots per inch of the ordinary and the fine picture."""


@dataclass(frozen=True, slots=True)
class OpenLink:
    """A link that holds right now, and what it opens."""

    claims: LinkClaims
    source: VersionSource
    citation: CitationRecord


async def open_link(token: str, links: Links, stores: Stores) -> OpenLink:
    """Check a token against its signature, its channel, its document and its citation.

    Raises:
        LinkForged: we never signed this.
        LinkEnded: it has expired, was revoked, or its document is gone.
    """
    claims = links.read(token)
    source = await stores.catalog.source(claims.version_id)
    citation = await stores.citations.get(claims.citation_id)
    if not await _is_in_force(claims, stores):
        raise LinkEnded("revoked")
    if source is None or source.is_deleted or source.channel_id != claims.channel_id:
        raise LinkEnded("its document is gone")
    if citation is None or not _is_what_was_signed(citation, claims):
        raise LinkEnded("its citation is gone")
    return OpenLink(claims, source, citation)


async def _is_in_force(claims: LinkClaims, stores: Stores) -> bool:
    channel = await _channel(claims.channel_id, stores)
    return channel is not None and channel.epoch == claims.epoch


async def _channel(channel_id: int, stores: Stores) -> Channel | None:
    try:
        return await stores.channels.get(channel_id)
    except UnknownChannel:
        return None


def _is_what_was_signed(citation: CitationRecord, claims: LinkClaims) -> bool:
    signed = (claims.channel_id, claims.version_id, claims.page)
    return (citation.channel_id, citation.version_id, citation.page) == signed


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A word of the invisible text layer, in points."""

    text: str
    x: float
    length: float


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the invisible text layer, in points."""

    y: float
    size: float
    spans: tuple[TextSpan, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked rectangle, in percent of the page."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageView:
    """One page as the viewer shows it."""

    number: int
    pages: int
    label: str
    """The printed page number, or '' when it is the same or unknown."""
    is_cited: bool
    cited_page: int
    marks: tuple[Mark, ...]
    width: float
    height: float
    """Displayed size in points; those of A4 when the page was never read."""
    lines: tuple[TextLine, ...]
    text: str


def make_page_view(link: OpenLink, number: int, page: Page | None) -> PageView:
    """The page ``number`` of the link's version; ``page`` is None when it was never read."""
    is_cited = number == link.claims.page
    label = page.label if page and page.label != str(number) else ""
    return PageView(
        number=number,
        pages=link.source.pages,
        label=label,
        is_cited=is_cited,
        cited_page=link.claims.page,
        marks=tuple(map(_mark, link.citation.boxes)) if is_cited else (),
        width=page.width if page else 595.0,
        height=page.height if page else 842.0,
        lines=tuple(_lines(page)) if page else (),
        text=page.text if page else "",
    )


def _mark(box: Box) -> Mark:
    return Mark(*(round(100 * share, 3) for share in (box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0)))


def _lines(page: Page) -> Iterable[TextLine]:
    for _, group in groupby(page.words, key=lambda word: word.line):
        words = list(group)
        top = min(word.box.y0 for word in words) * page.height
        bottom = max(word.box.y1 for word in words) * page.height
        height = bottom - top
        spans = tuple(_span(page, word) for word in words)
        yield TextLine(round(bottom - _BASELINE * height, 1), round(0.85 * height, 1), spans)


def _span(page: Page, word: PlacedWord) -> TextSpan:
    x0, x1 = word.box.x0 * page.width, word.box.x1 * page.width
    return TextSpan(page.text[word.start : word.end], round(x0, 1), round(max(0.1, x1 - x0), 1))


class Viewer:
    """Serves what a link opens."""

    def __init__(self, links: Links, stores: Stores, images: PageImages, pages: Templates) -> None:
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
        disposition = {"Content-Disposition": security.inline(link.source.file)}
        file_headers = {**security.PDF, **self._kept(link), **disposition}
        return web.FileResponse(blob, chunk_size=256 * 1024, headers=file_headers)

    async def _open(self, request: web.Request) -> OpenLink:
        return await open_link(request.match_info["token"], self._links, self._stores)

    async def _show(self, request: web.Request, link: OpenLink, number: int, root: str) -> web.Response:
        leaf = make_page_view(link, number, await self._read(link, number))
        return self._pages.page(
            "viewer.html",
            security.VIEWER,
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
        return security.kept_for(link.claims.expires - int(self._links.clock().timestamp()))


def _page_number(request: web.Request, link: OpenLink) -> int:
    """The page that a path names.

    Raises:
        web.HTTPNotFound: the version has no such page.
    """
    number = int(request.match_info["page"])
    if number != link.claims.page and not 1 <= number <= link.source.pages:
        raise web.HTTPNotFound
    return number
