"""Search and outline page of a document, shared by links and the console.

The query is part of each page's URL, so that hits stay marked from page to page without JavaScript. Callers
check access.
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
    """Search page of a document."""

    def __init__(self, search: DocumentSearch, templates: Templates) -> None:
        self._search = search
        self._templates = templates

    async def found(
        self, request: web.Request, source: VersionSource, holder: Hashable
    ) -> SearchResult | None:
        """Return the hits of the request's ``q``, None without a query or if the text is unavailable.

        ``holder`` identifies the requester, as in ``DocumentSearch``.
        """
        query = search_query(request)
        if not query or source.reading_id is None:
            return None
        try:
            return await self._search.find(source.reading_id, query, holder=holder)
        except InfrastructureError:
            return None

    async def show(
        self, request: web.Request, source: VersionSource, holder: Hashable, **values: object
    ) -> web.Response:
        """Return the hits of the request's ``q`` by page, or the document's outline without a query.

        ``values``: ``root``, ``base``, ``home`` (page to return to), ``last`` (last page), and what the
        viewer's template needs for a linked page.
        """
        query, outline = search_query(request), None
        found = await self.found(request, source, holder)
        if not query and source.reading_id is not None:
            try:
                outline = await self._search.outline(source.reading_id, holder=holder)
            except InfrastructureError:
                outline = None
        return self._templates.page(
            "document_search.html",
            security.VIEWER_HEADERS,
            source=source,
            query=query,
            found=found,
            suffix=query_suffix(query),
            outline=outline,
            max_headings=MAX_HEADINGS,
            max_query_chars=MAX_QUERY_CHARS,
            is_framed=request.headers.get("Sec-Fetch-Dest") == "iframe",
            **values,
        )


def redirect_to_page(request: web.Request, last: int) -> web.HTTPSeeOther:
    """Return the redirect to the page in the query's ``n``, clamped to the document's pages.

    Raises:
        web.HTTPNotFound: ``n`` is not a number.
    """
    text = request.query.get("n", "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPNotFound
    page = max(1, min(int(text), last))
    return web.HTTPSeeOther(f"{page}{query_suffix(search_query(request))}", headers=security.NO_STORE)


def search_query(request: web.Request) -> str:
    """Return the query ``q`` on one line, cut to ``MAX_QUERY_CHARS``; '' if it is missing."""
    return " ".join(request.query.get("q", "")[: 4 * MAX_QUERY_CHARS].split())[:MAX_QUERY_CHARS]


def query_suffix(query: str) -> str:
    """Return the URL suffix that carries a search to another page of the document."""
    return f"?{urlencode({'q': query})}" if query else ""
