"""The page behind every source button: the cited page with its passages marked, and the PDF itself.

A link is of one quote. All quotes of its answer on a page are marked, and from each one leads to the next.

Every request checks its link anew, the signature first, then SQL. A GET changes nothing, because link
previews and mail scanners fetch links as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from aiohttp import web

from bot.core.citations.relocation import FIRST_PAGE, REMEMBERED, PassageLocator, Place, moved
from bot.core.citations.signed_links import LinkClaims, Links
from bot.core.errors import LinkEnded
from bot.web import security
from bot.web.opened_links import AnswerQuote, OpenLink, open_link, quotes_of
from bot.web.page_images import PageImages
from bot.web.templates import Templates
from storage.errors import DocumentError, InfrastructureError
from storage.models import (
    Box,
    CitationRecord,
    LivePublication,
    Page,
    Shown,
    VersionSource,
    self_description,
)
from storage.recent_items import RecentItems
from storage.stores import Stores

SCALES = {"1": 132, "2": 220}
"""Dots per inch of a page's picture, by the scale in its path."""

UNREAD_SIZE = 595.0, 842.0
"""Points of A4: what a page that was never read is shown as."""

_BELOW_BASELINE = 0.22
"""Share of a line's height that lies below its base line."""


@dataclass(frozen=True, slots=True)
class MarkedBox:
    """A rectangle of a quote on the page."""

    box: Box
    is_current: bool
    """Of the quote that was opened: it is the strongest, and scrolled to."""


@dataclass(frozen=True, slots=True)
class MarginNumber:
    """The numbers of the quotes that begin in one line, beside that line."""

    text: str
    x: float
    """Where the line begins, as a share of the page's width."""
    y: float
    """The middle of the line, as a share of the page's height."""


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
class PageView:
    """One page as the viewer shows it."""

    number: int
    pages: int
    label: str
    """The printed page number, or '' when it is the same or unknown."""
    is_cited: bool
    cited_page: int
    marks: tuple[MarkedBox, ...]
    """Those of the opened quote last, to lie over the others."""
    margin: tuple[MarginNumber, ...]
    """Empty where the page has one quote only."""
    quotes: tuple[AnswerQuote, ...]
    """All quotes of the answer that stand on this page."""
    width: float
    height: float
    """Displayed size in points; those of A4 when the page was never read."""
    lines: tuple[TextLine, ...]
    text: str


def make_page_view(link: OpenLink, number: int, page: Page | None, quotes: Sequence[AnswerQuote]) -> PageView:
    """The page ``number`` of the link's version; ``page`` is None when it was never read."""
    here = [
        one for one in quotes if (one.record.version_id, one.record.page) == (link.claims.version_id, number)
    ]
    is_cited = number == link.claims.page
    label = page.label if page and page.label != str(number) else ""
    return PageView(
        number=number,
        pages=link.source.pages,
        label=label,
        is_cited=is_cited,
        cited_page=link.claims.page,
        marks=tuple(_marks(here)),
        margin=tuple(_margin(here, page)) if len(here) > 1 else (),
        quotes=tuple(here),
        width=page.width if page else UNREAD_SIZE[0],
        height=page.height if page else UNREAD_SIZE[1],
        lines=tuple(_lines(page)) if page else (),
        text=page.text if page else "",
    )


def make_chunk_view(
    source: VersionSource, number: int, cited_page: int, page: Page | None, boxes: Sequence[Box]
) -> PageView:
    """The page ``number`` of a version with these boxes drawn on it, which begin on ``cited_page``."""
    return PageView(
        number=number,
        pages=source.pages,
        label=page.label if page and page.label != str(number) else "",
        is_cited=number == cited_page,
        cited_page=cited_page,
        marks=tuple(MarkedBox(box, is_current=True) for box in boxes),
        margin=(),
        quotes=(),
        width=page.width if page else UNREAD_SIZE[0],
        height=page.height if page else UNREAD_SIZE[1],
        lines=tuple(_lines(page)) if page else (),
        text=page.text if page else "",
    )


def _marks(quotes: Sequence[AnswerQuote]) -> Iterable[MarkedBox]:
    for one in sorted(quotes, key=lambda quote: quote.is_current):
        yield from (MarkedBox(box, one.is_current) for box in one.record.boxes)


def _margin(quotes: Sequence[AnswerQuote], page: Page | None) -> Iterable[MarginNumber]:
    """Beside the lines, so that no number stands over a word."""
    numbers: dict[tuple[float, float], list[str]] = {}
    for one in quotes:
        if one.record.boxes:
            box = one.record.boxes[0]
            place = _line_start(box, page), round((box.y0 + box.y1) / 2, 3)
            numbers.setdefault(place, []).append(str(one.record.number))
    return [MarginNumber(" ".join(texts), *place) for place, texts in numbers.items()]


def _line_start(box: Box, page: Page | None) -> float:
    """Where the line begins that a box begins in; the box's own edge where the page was never read."""
    words = page.words if page else ()
    middle = (box.y0 + box.y1) / 2
    inside = [one for one in words if one.box.y0 <= middle <= one.box.y1 and one.box.x1 > box.x0]
    first = min(inside, key=lambda one: one.box.x0, default=None)
    return min((one.box.x0 for one in words if first and one.line == first.line), default=box.x0)


def _lines(page: Page) -> Iterable[TextLine]:
    for _, group in groupby(page.words, key=lambda word: word.line):
        words = list(group)
        top = min(word.box.y0 for word in words) * page.height
        bottom = max(word.box.y1 for word in words) * page.height
        height = bottom - top
        spans = []
        for word in words:
            x0, x1 = word.box.x0 * page.width, word.box.x1 * page.width
            text = page.text[word.start : word.end]
            spans.append(TextSpan(text, round(x0, 1), round(max(0.1, x1 - x0), 1)))
        yield TextLine(round(bottom - _BELOW_BASELINE * height, 1), round(0.85 * height, 1), tuple(spans))


@dataclass(frozen=True, slots=True)
class NewerPlace:
    """Where the version in use has what a link of an older one was made for."""

    publication: LivePublication
    place: Place


class Viewer:
    """Serves what a link opens."""

    def __init__(self, links: Links, stores: Stores, images: PageImages, pages: Templates) -> None:
        self._links = links
        self._stores = stores
        self._images = images
        self._pages = pages
        self._locator = PassageLocator(stores.readings)
        self._moved: RecentItems[tuple[int, int], CitationRecord] = RecentItems(REMEMBERED)

    def routes(self) -> list[web.RouteDef]:
        """The routes of the viewer; HEAD is answered where GET is."""
        return [
            web.get("/v/{token}", self.show_cited_page, name="viewer"),
            web.get(r"/v/{token}/{page:\d{1,6}}", self.show_page, name="viewer_page"),
            web.get(r"/v/{token}/p/{page:\d{1,6}}@{scale:[12]}x", self.send_image, name="viewer_image"),
            web.get("/v/{token}/file.pdf", self.send_file, name="viewer_file"),
            web.post("/v/{token}/renewal", self.renew, name="viewer_renewal"),
            web.post("/v/{token}/newer", self.open_newer, name="viewer_newer"),
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
            image = await self._images.image(link.source.sha256, number, dpi)
        except (DocumentError, InfrastructureError, OSError):
            return self._pages.refusal(503)
        return web.Response(body=image.data, content_type=image.media_type, headers=security.NO_STORE)

    async def send_file(self, request: web.Request) -> web.FileResponse:
        """The PDF itself, inline, whole or in ranges."""
        link = await self._open(request)
        blob = await self._stores.blobs.fetch(link.source.sha256)
        if not await asyncio.to_thread(blob.is_file):
            raise LinkEnded("its file is gone")
        disposition = {"Content-Disposition": security.inline(link.source.file)}
        file_headers = {**security.PDF, **security.NO_STORE, **disposition}
        return web.FileResponse(blob, chunk_size=256 * 1024, headers=file_headers)

    async def renew(self, request: web.Request) -> web.Response:
        """Later ends for the page's link and for those of the other quotes beside it, while all holds.

        JSON: ``tokens``, old -> new, and ``seconds``, for which the new ones live.
        """
        link, token = await self._open(request), request.match_info["token"]
        renewed = self._links.renewed(token)
        quotes = await quotes_of(link, token, self._links, self._stores)
        tokens = {one.token: self._links.token_beside(renewed, one.record) for one in quotes}
        seconds = self._seconds_left(self._links.read(renewed))
        return web.json_response(
            {"tokens": tokens | {token: renewed}, "seconds": seconds}, headers=security.NO_STORE
        )

    def _seconds_left(self, claims: LinkClaims) -> int:
        return max(0, int(claims.expires - self._links.clock().timestamp()))

    async def open_newer(self, request: web.Request) -> web.Response:
        """Lead to the same passage in the version in use, by a link that ends when this one does.

        Raises:
            web.HTTPSeeOther: to that page.
            web.HTTPNotFound: the link's version is the one in use.
        """
        link, token = await self._open(request), request.match_info["token"]
        if (newer := await self._newer(link)) is None:
            raise web.HTTPNotFound
        key = link.claims.citation_id, newer.publication.version_id
        if (record := self._moved.get(key)) is None:
            record = await self._cite_moved(link, newer)
        self._moved[key] = record
        raise web.HTTPSeeOther(f"../{self._links.token_beside(token, record)}")

    async def _cite_moved(self, link: OpenLink, newer: NewerPlace) -> CitationRecord:
        """Cite all quotes of the link's answer from its version where they stand now; its own is returned."""
        beside = await self._stores.citations.of_answer(link.citation)
        old = [one for one in beside if one.version_id == link.claims.version_id]
        version = newer.publication.version_id
        shown = [
            moved(one.shown, version, await self._locate(link, one.shown, newer.publication)) for one in old
        ]
        records = await self._stores.citations.add(link.claims.channel_id, shown)
        return next(new for one, new in zip(old, records, strict=True) if one.id == link.citation.id)

    async def _newer(self, link: OpenLink) -> NewerPlace | None:
        source = link.source
        if source.number >= source.newest_number:
            return None
        live = await self._stores.catalog.live_document(source.channel_id, source.document_id)
        if live is None or live.version_id == source.version_id:
            return None
        return NewerPlace(live, await self._locate(link, link.citation.shown, live))

    async def _locate(self, link: OpenLink, shown: Shown, newer: LivePublication) -> Place:
        try:
            return await self._locator.locate(shown, newer.reading_id, own=link.source.reading_id)
        except InfrastructureError:  # a page is better than none
            return FIRST_PAGE

    async def _open(self, request: web.Request) -> OpenLink:
        return await open_link(request.match_info["token"], self._links, self._stores)

    async def _show(self, request: web.Request, link: OpenLink, number: int, root: str) -> web.Response:
        token = request.match_info["token"]
        quotes = await quotes_of(link, token, self._links, self._stores)
        current = next((place for place, one in enumerate(quotes) if one.is_current), 0)
        page = None
        if link.source.reading_id is not None:
            with suppress(InfrastructureError, LookupError):  # picture and marks show what was quoted, too
                page = await self._stores.readings.page(link.source.reading_id, number)
        return self._pages.page(
            "viewer.html",
            security.VIEWER,
            root=root,
            base=f"{root}v/{token}",
            leaf=make_page_view(link, number, page, quotes),
            quotes=quotes,
            current=current,
            source=link.source,
            says=self_description(link.source.metadata),
            newer=await self._newer(link),
            seconds=self._seconds_left(link.claims),
            is_ocr=number in link.source.ocr_pages,
            quote=link.citation.quote,
            is_framed=request.headers.get("Sec-Fetch-Dest") == "iframe",
            is_linked=True,
        )


def _page_number(request: web.Request, link: OpenLink) -> int:
    """The page that a path names.

    Raises:
        web.HTTPNotFound: the version has no such page.
    """
    number = int(request.match_info["page"])
    if number != link.claims.page and not 1 <= number <= link.source.pages:
        raise web.HTTPNotFound
    return number
