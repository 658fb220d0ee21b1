"""Slack's Web API on loopback, with any handler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer


@asynccontextmanager
async def slack_api(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Pass each call to ``handle``, with its method in ``match_info``; yield the URL of the API."""
    app = web.Application()
    app.router.add_route("*", "/api/{method}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/api/"))
