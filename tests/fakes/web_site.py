"""A scripted web server on loopback, with the faults of real ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebSite:
    """Serves scripted responses and records requests."""

    def __init__(self) -> None:
        # Path -> HTML page, response or handler.
        self.pages: dict[str, Handler | web.Response | str] = {}
        self.asked: list[web.Request] = []
        # Maximum concurrent requests, robots.txt included.
        self.at_once = 0
        self._running = 0
        self.port = 0

    @property
    def paths(self) -> list[str]:
        """Requested paths without robots.txt."""
        return [one.path for one in self.asked if one.path != "/robots.txt"]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a page."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Return the response of a path."""
        self.asked.append(request)
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        try:
            await asyncio.sleep(0)
            page = self.pages.get(request.path)
            if page is None:
                return web.Response(status=404)
            if isinstance(page, str):
                return html(page)
            if isinstance(page, web.Response):
                return web.Response(body=page.body, status=page.status, headers=page.headers)
            return await page(request)
        finally:
            self._running -= 1


def html(text: str, **options: Any) -> web.Response:
    """Return an HTML response."""
    return web.Response(text=text, content_type="text/html", **options)


@asynccontextmanager
async def serving() -> AsyncIterator[WebSite]:
    """Yield a site on a free loopback port."""
    site = WebSite()
    runner = web.ServerRunner(web.Server(site.answer), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()
