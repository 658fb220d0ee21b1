"""The page that searches in a document, and shows its outline; the same for links and for the console.

A query travels in the address of a page, so that its places stay marked from page to page without any script.
Whoever calls has checked what the request may see.
"""

from __future__ import annotations

from collections.abc import Hashable
from urllib.parse import urlencode

from aiohttp import web

from bot.web import security
from bot.web.templates import Templates
from bot.web.viewer.document_search import MAX_HEADINGS, MAX_QUERY_CHARS, DocumentSearch, SearchResult
from storage.errors import InfrastructureError
from storage.models import VersionSource


class SearchPage:
    """Searches in a document, and shows it."""

    def __init__(self, search: DocumentSearch, templates: Templates) -> None:
        self._search = search
        self._templates = templates

    async def found(
        self, request: web.Request, source: VersionSource, holder: Hashable
    ) -> SearchResult | None:
        """What the request's ``q`` finds; None without one, and where the text cannot be looked through.

        ``holder`` is whoever asks, as ``DocumentSearch`` has it.
        """
        query = asked_for(request)
        if not query or source.reading_id is None:
            return None
        try:
            return await self._search.find(source.reading_id, query, holder=holder)
        except InfrastructureError:
            return None

    async def show(
        self, request: web.Request, source: VersionSource, holder: Hashable, **values: object
    ) -> web.Response:
        """Return the places of the request's ``q`` by page, else the document's headings.

        ``values`` are ``root``, ``base``, ``home``, the page to go back to, ``last``, the last page, and
        what the viewer's template wants of a page that is linked.
        """
        query, outline = asked_for(request), None
        found = await self.found(request, source, holder)
        if not query and source.reading_id is not None:
            try:
                outline = await self._search.outline(source.reading_id, holder=holder)
            except InfrastructureError:
                outline = None
        return self._templates.page(
            "document_search.html",
            security.VIEWER,
            source=source,
            query=query,
            found=found,
            suffix=suffix_of(query),
            outline=outline,
            max_headings=MAX_HEADINGS,
            max_query_chars=MAX_QUERY_CHARS,
            is_framed=request.headers.get("Sec-Fetch-Dest") == "iframe",
            **values,
        )


def way_to_page(request: web.Request, last: int) -> web.HTTPSeeOther:
    """Where the form leads that asks for a page by its number: beyond the last one it is the last.

    Raises:
        web.HTTPNotFound: it is no number.
    """
    text = request.query.get("n", "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPNotFound
    page = max(1, min(int(text), last))
    return web.HTTPSeeOther(f"{page}{suffix_of(asked_for(request))}", headers=security.NO_STORE)


def asked_for(request: web.Request) -> str:
    """What the address's ``q`` searches for, in one line and cut to its longest length; '' for nothing."""
    return " ".join(request.query.get("q", "")[: 4 * MAX_QUERY_CHARS].split())[:MAX_QUERY_CHARS]


def suffix_of(query: str) -> str:
    """What carries a query to another page of the document."""
    return f"?{urlencode({'q': query})}" if query else ""
