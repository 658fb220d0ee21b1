"""HTTP connections of the web side: limits on their number, and timeouts for incoming requests.

A malformed request gets a short response of ours. aiohttp's response quotes the line that it could not parse,
and logs it as an error: a link's token, or a whole header. Its access log prints paths, and so tokens, too.
Neither is used here.

aiohttp waits an hour for the rest of a request, on as many connections as there are file descriptors. Here a
new connection beyond a limit closes the one that has waited longest without completing a request. So a client
that sends partial requests (slowloris) closes its own connections, and a complete request is always answered.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from storage.errors import raised_at

SHUTDOWN_SECONDS = 10
# Replaces the names and versions in aiohttp's header.
SERVER = {"Server": "footnote"}

# Bytes (fewer at a body's end): a large upload may be slow, a trickle of single bytes may not.
BODY_STEP = 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on open connections, and timeouts of their phases in seconds."""

    total: int
    # IPv6 addresses of the same /64 count as one.
    per_address: int
    head_seconds: float = 15
    # Per ``BODY_STEP`` of a body; the timer stops while reading is paused.
    body_seconds: float = 30
    # Between two requests, and before the first.
    idle_seconds: float = 75
    # Interval between checks for late connections.
    sweep_seconds: float = 1


class Connection(RequestHandler):
    """Connection that tracks how long the current request takes to arrive."""

    __slots__ = ("_body", "_body_began", "_body_bytes", "_head_began", "_headers", "made")

    def __init__(self, server: web.Server, headers: Mapping[str, str], **options: Any) -> None:
        super().__init__(server, **options)
        self._headers = headers
        self.made = self._loop.time()
        self._head_began: float | None = None
        self._body: StreamReader | None = None
        # Start of the current body step, and the bytes received in it.
        self._body_began = 0.0
        self._body_bytes = 0

    @property
    def is_idle_or_incomplete(self) -> bool:
        """True if the connection is idle or its request is incomplete."""
        return self._has_incomplete_body or not (self._request_in_progress or self._messages)

    @property
    def has_completed_request(self) -> bool:
        """True if at least one complete request arrived."""
        return self._request_count > 0 and not self._has_incomplete_body

    @property
    def _has_incomplete_body(self) -> bool:
        return self._body is not None and not self._body.is_eof()

    def is_timed_out(self, limits: ConnectionLimits) -> bool:
        """True if the current head or body step has exceeded its timeout."""
        now = self._loop.time()
        if self._head_began is not None and now - self._head_began > limits.head_seconds:
            return True
        if self._reading_paused or not self._has_incomplete_body:
            return False
        return now - self._body_began > limits.body_seconds

    async def start(self) -> None:
        """Serve requests, unless the connection was closed before it began."""
        if self._manager is not None:
            await super().start()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and note when the current head or body began to arrive."""
        is_body, requests = self._has_incomplete_body, self._request_count
        super().data_received(data)
        if self._request_count > requests:
            self._head_began = None
            self._body = self._messages[-1][1]
            self._restart_body_timer()
        elif is_body:
            self._body_bytes += len(data)
            if self._body_bytes >= BODY_STEP:
                self._restart_body_timer()
        elif data and self._head_began is None:
            self._head_began = self._loop.time()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading and restart the body timer: nothing could arrive while reading was paused."""
        if self._reading_paused:
            self._restart_body_timer()
        super().resume_reading(resume_parser)

    def _restart_body_timer(self) -> None:
        self._body_began, self._body_bytes = self._loop.time(), 0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return a short response to a malformed request or an error outside the middlewares, and log which.

        Raises:
            ConnectionError: a response was already begun.
        """
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("request failed: %s", raised_at(exc) if exc else status)
        else:
            _log.info("malformed request: %d %s", status, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("a response was already begun")
        response = _plain_response(status, self._headers)
        response.force_close()
        return response

    def log_exception(self, *args: Any, exc_info: BaseException | None = None, **_: Any) -> None:
        """Log the error's type and place, not its message; an unreadable body is logged at debug level."""
        level = logging.DEBUG if isinstance(exc_info, web.RequestPayloadError) else logging.ERROR
        _log.log(level, "connection failed: %s", raised_at(exc_info) if exc_info else "unknown cause")

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a response; replace aiohttp's own to an unknown ``Expect``, which would repeat that header."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = _plain_response(resp.status, self._headers)
        return await super().finish_response(request, resp, start_time)


class Server(web.Server):
    """Connection factory that closes connections beyond the limits, and late ones."""

    def __init__(self, inner: web.Server, headers: Mapping[str, str], limits: ConnectionLimits) -> None:
        """Start checking for late connections at once.

        Args:
            headers: headers of responses that no application makes.
        """
        super().__init__(inner.request_handler, request_factory=inner.request_factory)
        self._options = {**inner._kwargs, "loop": inner._loop, "keepalive_timeout": limits.idle_seconds}
        self._headers = headers
        self._limits = limits
        self._open: dict[Connection, str] = {}
        self._per_address: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._timer = self._loop.call_later(limits.sweep_seconds, self._close_late)

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        return Connection(self, self._headers, **self._options)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Register a connection; beyond a limit, close a waiting one, or this one if all others are busy."""
        super().connection_made(handler, transport)
        if not isinstance(handler, Connection):
            return
        address = self._open[handler] = _address(transport)
        self._per_address[address] += 1
        if self._per_address[address] > self._limits.per_address:
            mine = (one for one, whose in self._open.items() if whose == address)
            self._evict_waiting(mine, "limit per address")
        if len(self._open) > self._limits.total:
            self._evict_waiting(self._open, "limit")

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Unregister a connection."""
        super().connection_lost(handler, exc)
        if isinstance(handler, Connection):
            self._unregister(handler)

    def pre_shutdown(self) -> None:
        """Stop accepting requests."""
        self._timer.cancel()
        super().pre_shutdown()

    def _evict_waiting(self, connections: Iterable[Connection], why: str) -> None:
        """Close the oldest waiting connection, preferably one that never completed a request."""
        waiting = [one for one in connections if one.is_idle_or_incomplete]
        if chosen := min(waiting, key=lambda one: (one.has_completed_request, one.made), default=None):
            self._close(chosen, why)

    def _close(self, connection: Connection, why: str) -> None:
        self._closed[why] += 1
        self._unregister(connection)
        connection.force_close()

    def _unregister(self, connection: Connection) -> None:
        if (address := self._open.pop(connection, None)) is not None:
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _close_late(self) -> None:
        self._timer = self._loop.call_later(self._limits.sweep_seconds, self._close_late)
        for late in [one for one in self._open if one.is_timed_out(self._limits)]:
            self._close(late, "request timeout")
        for why, number in self._closed.items():
            _log.warning("closed %d connections: %s", number, why)
        self._closed.clear()


class Runner(web.AppRunner):
    """Application runner with limited connections."""

    def __init__(self, app: web.Application, headers: Mapping[str, str], limits: ConnectionLimits) -> None:
        super().__init__(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        self._headers = {**headers, **SERVER}
        self._limits = limits

    async def _make_server(self) -> web.Server:
        return Server(await super()._make_server(), self._headers, self._limits)


def cap_to_file_descriptors(wanted: int) -> int:
    """Return ``wanted``, capped at half of the process's file descriptors."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if handles == resource.RLIM_INFINITY else min(wanted, max(1, handles // 2))


def _address(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    if not peer:
        return ""
    try:
        address = ip_address(str(peer[0]).partition("%")[0])
    except ValueError:
        return str(peer[0])
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or int(address) >> 64)
    return str(address)


def _plain_response(status: int, headers: Mapping[str, str]) -> web.Response:
    return web.Response(status=status, text=f"{status} {HTTPStatus(status).phrase}\n", headers=headers)
