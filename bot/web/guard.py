"""Lets only a browser on this very machine use the console, which asks for no sign-in.

A foreign page may send requests to a loopback address, or give its own name that address (DNS
rebinding); a proxy may bring the whole world. Each of these shows in the headers checked here.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from bot.core.loopback import is_loopback_host

_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
ASKED_BY = "X-Footnote-Console"
"""A header of our own: a foreign page cannot send it without being asked for leave first."""


def require_this_machine(request: web.Request) -> None:
    """Refuse whoever is not a browser on this machine that was given our own address.

    Raises:
        web.HTTPForbidden: it is somebody else.
    """
    if not is_loopback_host(request.remote) or not is_loopback_host(_host(request)):
        raise web.HTTPForbidden
    if any(name in request.headers for name in _FORWARDED):
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "none") == "cross-site" and request.path != "/":
        raise web.HTTPForbidden


def require_own_page(request: web.Request) -> None:
    """Refuse a request that no page of ours sent.

    Raises:
        web.HTTPForbidden: it has another origin, or not the marks of our own script.
    """
    require_this_machine(request)
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise web.HTTPForbidden
    if request.headers.get(ASKED_BY) != "1" or request.content_type != "application/json":
        raise web.HTTPForbidden


def _host(request: web.Request) -> str | None:
    try:
        return urlsplit(f"//{request.host}").hostname
    except ValueError:
        return None
