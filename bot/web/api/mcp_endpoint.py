"""Route of the MCP server: streamable HTTP with the API's tokens, bridged from aiohttp to its ASGI app."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import web

from bot.web import security
from bot.web.api.access import ACCESS_KEY
from bot.web.api.api_service import ApiService
from bot.web.api.problems import render_problems
from bot.web.middleware import MCP_PATH
from storage.task_group import cancel_and_wait

Json = dict[str, Any]
_Serve = Callable[[Any, Any, Any], Awaitable[None]]
# Time that requests in progress get at shutdown.
CLOSE_SECONDS = 5.0
METHODS = ("GET", "POST", "DELETE")


class McpEndpoint:
    """Handler of ``MCP_PATH``; the SDK is imported by the first caller with a token."""

    def __init__(self, service: ApiService) -> None:
        self._service = service
        self._app: asyncio.Future[_Serve] | None = None
        self._is_over = asyncio.Event()
        self._running: list[asyncio.Task[None]] = []

    def routes(self) -> list[web.RouteDef]:
        """Return the route for every method of the protocol."""

        async def handle(request: web.Request) -> web.StreamResponse:
            return await render_problems(request, self.handle)

        return [web.route(method, MCP_PATH, handle, name=f"mcp_{method.lower()}") for method in METHODS]

    async def cleanup_context(self, _app: web.Application) -> AsyncIterator[None]:
        """End the server with the application."""
        yield
        self._is_over.set()
        for one in self._running:
            await asyncio.wait([one], timeout=CLOSE_SECONDS)
            await cancel_and_wait(one)

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request as the MCP server does."""
        access = await self._service.access.require(request)
        serve = await self._start()
        exchange = _Exchange(await request.read())
        await serve(_scope(request) | {ACCESS_KEY: access}, exchange.receive, exchange.send)
        return exchange.response()

    async def _start(self) -> _Serve:
        # Lazy import, beside other requests: most homes have no token, and it takes most of a second.
        server = await asyncio.to_thread(importlib.import_module, "bot.web.api.mcp_server")
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            running = self._run(server.serving_http(self._service), self._app)
            self._running.append(asyncio.create_task(running, name="mcp"))
        return await asyncio.shield(self._app)

    async def _run(self, server: AbstractAsyncContextManager[_Serve], app: asyncio.Future[_Serve]) -> None:
        """Keep the server open in a task of its own, as its task group requires."""
        async with server as serve:
            app.set_result(serve)
            await self._is_over.wait()


class _Exchange:
    """Request and its response, as ASGI messages."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []

    async def receive(self) -> Json:
        """Return the body; later, wait forever: the client stays until it has the response."""
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Json) -> None:
        """Collect a part of the response."""
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        else:
            self._parts.append(message.get("body", b""))

    def response(self) -> web.Response:
        """Return the whole response."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._headers}
        headers.pop("content-length", None)
        body = b"".join(self._parts)
        return web.Response(status=self._status, body=body, headers=headers | security.NO_STORE)


def _scope(request: web.Request) -> Json:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.raw_path.encode(),
        "query_string": request.query_string.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": None,
        "server": None,
        "state": {},
    }
