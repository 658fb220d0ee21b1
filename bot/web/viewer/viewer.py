"""Page viewer behind every source button: the cited page with its passages marked, and the PDF.

A link cites one quote. All quotes of its answer on a page are marked and linked to one another.

Every request verifies its link again, the signature first, then SQL. A GET changes nothing, because link
previews and mail scanners fetch links as well; it is only audited and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from bot.answers.citations.relocation import FIRST_PAGE, REMEMBERED, PassageLocator, Place, relocate
from bot.answers.citations.signed_links import LinkClaims, Links
from bot.core.errors import LinkEnded
from bot.web import security
from bot.web.link_verification import LinkAudit, VerifiedLink, quotes_of, verify_link
from bot.web.page_images import PageImages
from bot.web.source_openings import SourceOpenings
from bot.web.templates import Templates
from bot.web.viewer.page_view import citation_line, make_page_view
from bot.web.viewer.search_page import SearchPage, redirect_to_page
from storage.errors import DocumentError, InfrastructureError
from storage.lru_cache import LRUCache
from storage.models import Box, CitationRecord, CitedPlace, LivePublication, metadata_line
from storage.sql.audit import AuditLog
from storage.stores import Stores

# Name in the path -> (dots per inch, region): a zoomed page is loaded in quarters, as they come into view.
PICTURES: Mapping[str, tuple[int, Box | None]] = {
    "1x": (132, None),
    "2x": (220, None),
    "4x-1": (400, Box(0, 0, 0.5, 0.5)),
    "4x-2": (400, Box(0.5, 0, 1, 0.5)),
    "4x-3": (400, Box(0, 0.5, 0.5, 1)),
    "4x-4": (400, Box(0.5, 0.5, 1, 1)),
}
PICTURE_PATH = r"/p/{page:\d{1,6}}@{picture:1x|2x|4x-[1-4]}"


@dataclass(frozen=True, slots=True)
class CurrentPassage:
    """Place of a link's passage in the current version of its document."""

    publication: LivePublication
    place: Place


class Viewer:
    """Routes of everything that a link opens."""

    def __init__(
        self,
        links: Links,
        stores: Stores,
        images: PageImages,
        pages: Templates,
        *,
        search: SearchPage,
        openings: SourceOpenings,
    ) -> None:
        self._links = links
        self._openings = openings
        self._stores = stores
        self._images = images
        self._pages = pages
        self.audit = LinkAudit(AuditLog(stores.database))
        self._search = search
        self._locator = PassageLocator(stores.readings)
        self._moved: LRUCache[tuple[int, int], CitationRecord] = LRUCache(REMEMBERED)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the viewer; HEAD is answered where GET is."""
        return [
            web.get("/v/{token}", self.show_cited_page, name="viewer"),
            web.get(r"/v/{token}/{page:\d{1,6}}", self.show_page, name="viewer_page"),
            web.get("/v/{token}" + PICTURE_PATH, self.send_image, name="viewer_image"),
            web.get("/v/{token}/search", self.search, name="viewer_search"),
            web.get("/v/{token}/go", self.go_to_page, name="viewer_go"),
            web.get("/v/{token}/file.pdf", self.send_file, name="viewer_file"),
            web.post("/v/{token}/renewal", self.renew, name="viewer_renewal"),
            web.post("/v/{token}/newer", self.open_current_version, name="viewer_newer"),
        ]

    async def show_cited_page(self, request: web.Request) -> web.Response:
        """Return the cited page."""
        link = await self._open(request)
        self.audit.enqueue(request, link)
        self._openings.record_opening(request, link.citation)
        return await self._show(request, link, link.claims.page, root="../")

    async def show_page(self, request: web.Request) -> web.Response:
        """Return another page of the same version."""
        link = await self._open(request)
        return await self._show(request, link, _page_number(request, link), root="../../")

    async def search(self, request: web.Request) -> web.Response:
        """Return the version's hits for the query's ``q``, or its outline without one."""
        link, token = await self._open(request), request.match_info["token"]
        last = max(link.source.pages, link.claims.page)
        values = {
            "root": "../../",
            "base": f"../../v/{token}",
            "home": link.claims.page,
            "last": last,
            "seconds": self._seconds_left(link.claims),
        }
        return await self._search.show(request, link.source, link.holder, is_linked=True, **values)

    async def go_to_page(self, request: web.Request) -> web.Response:
        """Redirect to the page in the query's ``n``.

        Raises:
            web.HTTPSeeOther: to that page.
            web.HTTPNotFound: ``n`` is not a number.
        """
        link = await self._open(request)
        raise redirect_to_page(request, max(link.source.pages, link.claims.page))

    async def send_image(self, request: web.Request) -> web.Response:
        """Return the picture of a page."""
        link = await self._open(request)
        number = _page_number(request, link)
        dpi, part = PICTURES[request.match_info["picture"]]
        try:
            image = await self._images.image(link.source.sha256, number, dpi, clip=part, holder=link.holder)
        except (DocumentError, InfrastructureError, OSError):
            return self._pages.refusal(503)
        return web.Response(body=image.data, content_type=image.media_type, headers=security.NO_STORE)

    async def send_file(self, request: web.Request) -> web.FileResponse:
        """Return the file inline, whole or in ranges."""
        link = await self._open(request)
        blob = await self._stores.blobs.fetch(link.source.sha256)
        if not await asyncio.to_thread(blob.is_file):
            raise LinkEnded("its file is gone")
        self.audit.enqueue(request, link)
        file_headers = security.document_headers(link.source.file)
        return web.FileResponse(blob, chunk_size=256 * 1024, headers=file_headers)

    async def renew(self, request: web.Request) -> web.Response:
        """Renew the page's link and those of the answer's other quotes, while they are valid.

        Returns JSON: ``tokens``, old -> new, and ``seconds``, the lifetime of the new ones.
        """
        link, token = await self._open(request), request.match_info["token"]
        renewed = self._links.renew(token)
        quotes = await quotes_of(link, token, self._links, self._stores)
        tokens = {one.token: self._links.token_for_citation(renewed, one.record) for one in quotes}
        seconds = self._seconds_left(self._links.read(renewed))
        return web.json_response(
            {"tokens": tokens | {token: renewed}, "seconds": seconds}, headers=security.NO_STORE
        )

    def _seconds_left(self, claims: LinkClaims) -> int:
        return max(0, int(claims.expires - self._links.clock().timestamp()))

    async def open_current_version(self, request: web.Request) -> web.Response:
        """Redirect to the same passage in the current version, by a link that expires with this one.

        Raises:
            web.HTTPSeeOther: to that page.
            web.HTTPNotFound: the link's version is the current one.
        """
        link, token = await self._open(request), request.match_info["token"]
        if (newer := await self._locate_in_current(link)) is None:
            raise web.HTTPNotFound
        key = link.claims.citation_id, newer.publication.version_id
        if (record := self._moved.get(key)) is None:
            record = await self._cite_moved(link, newer)
        self._moved[key] = record
        raise web.HTTPSeeOther(f"../{self._links.token_for_citation(token, record)}")

    async def _cite_moved(self, link: VerifiedLink, newer: CurrentPassage) -> CitationRecord:
        """Cite the answer's quotes from this version at their new places; return the link's citation."""
        beside = await self._stores.citations.of_answer(link.citation)
        old = [one for one in beside if one.version_id == link.claims.version_id]
        version = newer.publication.version_id
        shown = [
            relocate(one.shown, version, await self._locate(link, one.shown, newer.publication))
            for one in old
        ]
        records = await self._stores.citations.add(link.claims.channel_id, shown)
        return next(new for one, new in zip(old, records, strict=True) if one.id == link.citation.id)

    async def _locate_in_current(self, link: VerifiedLink) -> CurrentPassage | None:
        source = link.source
        if source.number >= source.newest_number:
            return None
        live = await self._stores.catalog.live_document(source.channel_id, source.document_id)
        if live is None or live.version_id == source.version_id:
            return None
        return CurrentPassage(live, await self._locate(link, link.citation.shown, live))

    async def _locate(self, link: VerifiedLink, shown: CitedPlace, newer: LivePublication) -> Place:
        try:
            return await self._locator.locate(shown, newer.reading_id, own=link.source.reading_id)
        except InfrastructureError:  # fall back to the first page
            return FIRST_PAGE

    async def _open(self, request: web.Request) -> VerifiedLink:
        return await verify_link(request.match_info["token"], self._links, self._stores)

    async def _show(self, request: web.Request, link: VerifiedLink, number: int, root: str) -> web.Response:
        token = request.match_info["token"]
        quotes = await quotes_of(link, token, self._links, self._stores)
        current = next((place for place, one in enumerate(quotes) if one.is_current), 0)
        page = None
        if link.source.reading_id is not None:
            with suppress(InfrastructureError, LookupError):  # picture and marks suffice without the text
                page = await self._stores.readings.page(link.source.reading_id, number)
        found = await self._search.found(request, link.source, link.holder)
        return self._pages.page(
            "viewer.html",
            security.VIEWER_HEADERS,
            root=root,
            base=f"{root}v/{token}",
            leaf=make_page_view(link, number, page, quotes, found),
            found=found,
            quotes=quotes,
            current=current,
            source=link.source,
            says=metadata_line(link.source.metadata),
            newer=await self._locate_in_current(link),
            seconds=self._seconds_left(link.claims),
            is_ocr=number in link.source.ocr_pages,
            quote=link.citation.quote,
            citation=citation_line(link.source, number, page.label if page else ""),
            is_framed=request.headers.get("Sec-Fetch-Dest") == "iframe",
            is_chunk_gone=False,
            is_linked=True,
        )


def _page_number(request: web.Request, link: VerifiedLink) -> int:
    """Return the page number in the path.

    Raises:
        web.HTTPNotFound: the version has no such page.
    """
    number = int(request.match_info["page"])
    if number != link.claims.page and not 1 <= number <= link.source.pages:
        raise web.HTTPNotFound
    return number
