"""The HTTP connections of the web side: how many there may be, how long a request may take to come.

Whatever is no request gets a short answer of ours.

aiohttp answers such a one with the line that it could not read, and logs it as an error: a link's token, or a
header, whole. Its own log of requests prints the paths, and so the tokens, too. Neither is used here.

aiohttp waits for the rest of a request for an hour, and for as many as there are handles of files. Here a new
connection beyond a limit closes the one that has waited longest without sending a whole request. So whoever
sends half requests closes his own, and a request that comes whole is always answered.
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
# In place of the names and versions that aiohttp tells.
SERVER = {"Server": "footnote"}

# Bytes, fewer at a body's end: a large file may take its time, single bytes now and then may not.
BODY_STEP = 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections are open at a time, and how many seconds each of their parts may take."""

    in_all: int = 512
    # Of an IPv6 address all those that begin alike, up to /64, count as one.
    per_address: int = 256
    head_seconds: float = 15
    # For each ``BODY_STEP`` of a body, however many there are; while we do not read nothing has to come.
    body_seconds: float = 30
    # Between two requests, and before the first one.
    idle_seconds: float = 75
    # Between two looks at who is late.
    sweep_seconds: float = 1


class Connection(RequestHandler):
    """One connection, on which requests come one after the other."""

    __slots__ = ("_body", "_body_began", "_body_bytes", "_head_began", "_headers", "made")

    def __init__(self, server: web.Server, headers: Mapping[str, str], **options: Any) -> None:
        super().__init__(server, **options)
        self._headers = headers
        self.made = self._loop.time()
        self._head_began: float | None = None
        self._body: StreamReader | None = None
        # When the step of it that comes now began, and what came of that.
        self._body_began = 0.0
        self._body_bytes = 0

    @property
    def is_waiting(self) -> bool:
        """True if the rest of a request, or a whole one, is still to come."""
        return self._has_half_a_body or not (self._request_in_progress or self._messages)

    @property
    def is_proven(self) -> bool:
        """True if a whole request ever came."""
        return self._request_count > 0 and not self._has_half_a_body

    @property
    def _has_half_a_body(self) -> bool:
        return self._body is not None and not self._body.is_eof()

    def is_late(self, limits: ConnectionLimits) -> bool:
        """True if what was begun should have come by now."""
        now = self._loop.time()
        if self._head_began is not None and now - self._head_began > limits.head_seconds:
            return True
        if self._reading_paused or not self._has_half_a_body:
            return False
        return now - self._body_began > limits.body_seconds

    async def start(self) -> None:
        """Serve requests; none where the connection was closed before it began."""
        if self._manager is not None:
            await super().start()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and note since when the head or the body of a request is on its way."""
        is_body, requests = self._has_half_a_body, self._request_count
        super().data_received(data)
        if self._request_count > requests:
            self._head_began = None
            self._body = self._messages[-1][1]
            self._begin_step()
        elif is_body:
            self._body_bytes += len(data)
            if self._body_bytes >= BODY_STEP:
                self._begin_step()
        elif data and self._head_began is None:
            self._head_began = self._loop.time()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on; nobody could send anything meanwhile."""
        if self._reading_paused:
            self._begin_step()
        super().resume_reading(resume_parser)

    def _begin_step(self) -> None:
        self._body_began, self._body_bytes = self._loop.time(), 0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is no request, or failed where no middleware could catch it; it says which.

        Raises:
            ConnectionError: another answer was begun already.
        """
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("a request failed: %s", raised_at(exc) if exc else status)
        else:
            _log.info("no request that can be read: %d %s", status, type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun")
        response = _short_answer(status, self._headers)
        response.force_close()
        return response

    def log_exception(self, *args: Any, exc_info: BaseException | None = None, **_: Any) -> None:
        """Log what failed and where, without its message; the rest of an unreadable body is no failure."""
        level = logging.DEBUG if isinstance(exc_info, web.RequestPayloadError) else logging.ERROR
        _log.log(level, "a connection failed: %s", raised_at(exc_info) if exc_info else "for no known reason")

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; aiohttp's own to an unknown ``Expect`` would repeat that header."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = _short_answer(resp.status, self._headers)
        return await super().finish_response(request, resp, start_time)


class Server(web.Server):
    """Makes a ``Connection`` for each socket, and closes those that are too many or late."""

    def __init__(self, of: web.Server, headers: Mapping[str, str], limits: ConnectionLimits) -> None:
        """Begin at once.

        Args:
            of: the server of an application, whose requests go there as they would.
            headers: of answers that no application gives.
            limits: of the connections.
        """
        super().__init__(of.request_handler, request_factory=of.request_factory)
        self._options = {**of._kwargs, "loop": of._loop, "keepalive_timeout": limits.idle_seconds}
        self._headers = headers
        self._limits = limits
        self._open: dict[Connection, str] = {}
        self._per_address: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._timer = self._loop.call_later(limits.sweep_seconds, self._sweep)

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        return Connection(self, self._headers, **self._options)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection; one beyond a limit closes another one, or itself where all others work."""
        super().connection_made(handler, transport)
        if not isinstance(handler, Connection):
            return
        address = self._open[handler] = _address(transport)
        self._per_address[address] += 1
        if self._per_address[address] > self._limits.per_address:
            mine = (one for one, whose in self._open.items() if whose == address)
            self._close_one(mine, "too many of one address")
        if len(self._open) > self._limits.in_all:
            self._close_one(self._open, "too many")

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Count it no more."""
        super().connection_lost(handler, exc)
        if isinstance(handler, Connection):
            self._forget(handler)

    def pre_shutdown(self) -> None:
        """Take no more requests."""
        self._timer.cancel()
        super().pre_shutdown()

    def _close_one(self, connections: Iterable[Connection], why: str) -> None:
        """Close the oldest of those that wait, at first of those that never sent a whole request."""
        waiting = [one for one in connections if one.is_waiting]
        if chosen := min(waiting, key=lambda one: (one.is_proven, one.made), default=None):
            self._close(chosen, why)

    def _close(self, connection: Connection, why: str) -> None:
        self._closed[why] += 1
        self._forget(connection)
        connection.force_close()

    def _forget(self, connection: Connection) -> None:
        if (address := self._open.pop(connection, None)) is not None:
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _sweep(self) -> None:
        self._timer = self._loop.call_later(self._limits.sweep_seconds, self._sweep)
        for late in [one for one in self._open if one.is_late(self._limits)]:
            self._close(late, "no whole request in time")
        for why, number in self._closed.items():
            _log.warning("closed %d connections: %s", number, why)
        self._closed.clear()


class Runner(web.AppRunner):
    """Runs an application on such connections."""

    def __init__(
        self, app: web.Application, headers: Mapping[str, str], limits: ConnectionLimits | None = None
    ) -> None:
        super().__init__(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        self._headers = {**headers, **SERVER}
        self._limits = limits or ConnectionLimits()

    async def _make_server(self) -> web.Server:
        return Server(await super()._make_server(), self._headers, self._limits)


def connections_that_fit(wanted: int) -> int:
    """So many connections, but not more than half of the handles that this process may have."""
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


def _short_answer(status: int, headers: Mapping[str, str]) -> web.Response:
    return web.Response(status=status, text=f"{status} {HTTPStatus(status).phrase}\n", headers=headers)
