"""Middlewares: access log, error pages and console cookie; no log line holds a path, token or text.

aiohttp's access log prints the path, and so the link token: ``make_runner`` switches it off.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.console_secret import QUERY_NAME
from bot.core.errors import LinkEnded, LinkError
from bot.web.connections import SERVER
from bot.web.security import (
    BASE_HEADERS,
    CONSOLE_SECRET,
    HTTPS_ONLY,
    ConsoleLocked,
    console_cookie,
    require_this_machine,
)
from bot.web.templates import Templates
from storage.chat.citations import ShownIn
from storage.models import Channel

# Returns where members of a channel get a new link, as values of the page of an ended link.
RenewalUrls = Callable[[Channel, ShownIn | None], Mapping[str, str | None]]


class CountRequest(Protocol):
    """Callback that counts a request by route name, status and duration in seconds."""

    def __call__(self, route: str, status: int, seconds: float, *, is_forged: bool) -> None:
        """Count a request; ``is_forged``: its link was not signed by us."""


# Paths of programs, which get their errors as JSON.
API_PATH, MCP_PATH = "/api/v1", "/mcp"
COOKIE_SECONDS = 30 * 24 * 3600
_FORGED = web.RequestKey("is_forged", bool)
_PARSERS = {"aiohttp.web_request", "aiohttp.multipart"}
_log = logging.getLogger(__name__)
# Routes that probes and open pages poll: their successes are logged at debug level.
_QUIET_ROUTES = {
    "healthz",
    "readyz",
    "static",
    "console_channel",
    "console_channels",
    "console_folders",
    "metrics",
}


def default_headers(public_url: str) -> dict[str, str]:
    """Return the headers of every response that does not set them itself."""
    return BASE_HEADERS | (HTTPS_ONLY if public_url.startswith("https://") else {})


def add_headers(
    common: Mapping[str, str],
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Return a signal handler that adds the default headers a response lacks."""

    async def add(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(SERVER)
        for name, value in common.items():
            response.headers.setdefault(name, value)

    return add


def log_access(count: CountRequest | None = None) -> Middleware:
    """Return a middleware that logs method, route name, status and milliseconds, and calls ``count``."""

    @web.middleware
    async def log(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        status = 500
        try:
            response = await handler(request)
            status = response.status
            return response
        except web.HTTPException as refusal:
            status = refusal.status
            raise
        finally:
            name, taken = _route_name(request), time.monotonic() - started
            level = logging.DEBUG if name in _QUIET_ROUTES and status < 400 else logging.INFO
            _log.log(level, "%s %s %d %.0f ms", request.method, name, status, taken * 1000)
            if count:
                count(name, status, taken, is_forged=request.get(_FORGED, False))

    return log


def render_errors(pages: Templates, renewal_urls: RenewalUrls) -> Middleware:
    """Return a middleware that turns every error into a page without details of its cause."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            require_known_charset(request)
            return await handler(request)
        except LinkError as error:
            request[_FORGED] = not isinstance(error, LinkEnded)
            return _link_refusal(error, pages, renewal_urls)
        except ConsoleLocked:
            return pages.locked()
        except web.HTTPException as refusal:
            if refusal.status in pages.refusals:
                return pages.refusal(refusal.status)
            raise
        except Exception as error:  # outermost boundary: details go to the log only
            if is_unreadable(request, error):
                return pages.refusal(400)
            log_failure(request, error)
            return pages.refusal(500)

    return answer


def except_programs(middleware: Middleware) -> Middleware:
    """Return the middleware for people only: the API and the MCP server render their own errors."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_for_programs(request.path):
            return await handler(request)
        return await middleware(request, handler)

    return answer


def is_for_programs(path: str) -> bool:
    """True for the paths of the API and the MCP server."""
    return path == MCP_PATH or path.startswith(f"{API_PATH}/")


def is_unreadable(request: web.Request, error: Exception) -> bool:
    """True if a body contradicts its headers or ended early."""
    is_gone = isinstance(error, ConnectionError) and request.transport is None
    # aiohttp raises many kinds of errors for malformed parts, even assertions, so look at the raising module.
    # A full disk is our own failure: form files are written there.
    modules = {frame.f_globals.get("__name__") for frame, _ in traceback.walk_tb(error.__traceback__)}
    is_parsing = not modules.isdisjoint(_PARSERS) and not isinstance(error, OSError | MemoryError)
    return is_gone or is_parsing or isinstance(error, web.RequestPayloadError)


def _link_refusal(error: LinkError, pages: Templates, renewal_urls: RenewalUrls) -> web.Response:
    if not isinstance(error, LinkEnded):
        return pages.refusal(404)
    return pages.ended(renewal_urls(*error.place) if error.place else {})


def store_console_secret(pages: Templates) -> Middleware:
    """Return a middleware that puts the console's secret into a cookie when a browser opens a URL with it.

    It responds with a page that leads on to the same URL without the secret. A redirect would not do:
    browsers attribute it to the page that held the link, and then send no SameSite=Strict cookie.
    """

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        is_console = request.path == "/" or request.path.startswith("/console/")
        if not (is_page and is_console and QUERY_NAME in request.query):
            return await handler(request)
        require_this_machine(request)
        path = str(request.rel_url.without_query_params(QUERY_NAME))
        response = pages.plain("signed_in.html", path=path)
        response.set_cookie(
            console_cookie(request),
            request.app[CONSOLE_SECRET],
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Strict",
        )
        return response

    return keep


def log_failure(request: web.Request, error: Exception) -> None:
    """Log the error's type and traceback without its message, which may quote a question or document."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    name = _route_name(request)
    _log.error("%s %s failed: %s\n%s", request.method, name, type(error).__name__, frames)


def _route_name(request: web.Request) -> str:
    """Return the route's name for log and metrics."""
    is_ours = request.match_info.http_exception is None
    return (request.match_info.route.name or "unnamed") if is_ours else "unmatched"


def require_known_charset(request: web.Request) -> None:
    """Reject a body whose charset Python does not know.

    Raises:
        web.HTTPBadRequest: the charset is unknown or invalid.
    """
    try:
        bytes(8).decode(request.charset or "utf-8", "replace")  # decoding zero bytes would accept any name
    except (LookupError, ValueError):
        raise web.HTTPBadRequest from None
