"""The HTTP connections of the web side: whatever is no request gets a short answer of ours.

aiohttp answers such a one with the line that it could not read, and logs it as an error: a link's token, or a
header, whole. Its own log of requests prints the paths, and so the tokens, too. Neither is used here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from storage.errors import raised_at

SHUTDOWN_SECONDS = 10
SERVER = {"Server": "footnote"}
"""In place of the names and versions that aiohttp tells."""

_log = logging.getLogger(__name__)


class Connection(RequestHandler):
    """One connection, on which requests come one after the other."""

    __slots__ = ("_headers",)

    def __init__(self, server: web.Server, headers: Mapping[str, str], **options: Any) -> None:
        super().__init__(server, **options)
        self._headers = headers

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
    """Makes a ``Connection`` for each socket."""

    def __init__(self, of: web.Server, headers: Mapping[str, str]) -> None:
        """``of``: the server of an application, whose requests go there as they would.

        ``headers``: of answers that no application gives.
        """
        super().__init__(of.request_handler, request_factory=of.request_factory)
        self._options = {**of._kwargs, "loop": of._loop}
        self._headers = headers

    def __call__(self) -> RequestHandler:
        """The protocol of a new connection."""
        return Connection(self, self._headers, **self._options)


class Runner(web.AppRunner):
    """Runs an application on such connections."""

    def __init__(self, app: web.Application, headers: Mapping[str, str]) -> None:
        super().__init__(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        self._headers = {**headers, **SERVER}

    async def _make_server(self) -> web.Server:
        return Server(await super()._make_server(), self._headers)


def _short_answer(status: int, headers: Mapping[str, str]) -> web.Response:
    return web.Response(status=status, text=f"{status} {HTTPStatus(status).phrase}\n", headers=headers)
