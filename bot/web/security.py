"""The headers of every response, and the check that the console is used on this machine, with its secret.

A foreign page may send requests to a loopback address, or give its own name that address (DNS rebinding), and
a proxy may bring the whole world. Most of these show in the request headers checked here. What does not, as
a proxy that rewrites Host or another user of the machine, lacks the secret.
"""

from __future__ import annotations

import hmac
from urllib.parse import quote, urlsplit

from aiohttp import web

from bot.console_secret import QUERY_NAME
from bot.settings import is_loopback_host

CONSOLE_SECRET = web.AppKey("console_secret", str)
"""What opens the console of an application; one without it has none."""

_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
"""Request headers by which a proxy shows."""
ASKED_BY = "X-Footnote-Console"
"""Request header of our own script: a browser asks us before a foreign page may send it."""

EVERYWHERE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow, noarchive, noimageindex",
}
"""Of each response, where it does not set them itself: nothing is loaded, framed or sent as a referrer."""
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
"""Beside those, where the public URL is https."""
NO_STORE = {"Cache-Control": "private, no-store"}
"""Of what shows questions, answers or documents: no cache keeps it."""

_PAGE = "default-src 'none'; base-uri 'none'; img-src 'self'; script-src 'self'; style-src 'self'; "
VIEWER = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "connect-src 'self'; form-action 'self'; frame-ancestors 'self'",
}
"""Of the viewer's page, which the console frames: it renews its link, and leads to a newer version."""
CONSOLE = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE
    + "form-action 'none'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'",
}
"""Of the console's page, which asks this server and frames the viewer."""
ADMIN = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "form-action 'self'; connect-src 'self'; frame-ancestors 'none'",
}
"""Of the console's other pages, whose forms and uploads are sent to this server."""
PDF = {
    "Content-Type": "application/pdf",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'self'",
}
"""Of a PDF, whose scripts run nowhere."""
EMBEDDED = {"Cross-Origin-Resource-Policy": "cross-origin"}
"""Of a figure's picture, which the pages of chat platforms show."""
STATIC = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Of a static file: its name changes with its content."""


class ConsoleLocked(web.HTTPUnauthorized):
    """Somebody asks for the console without its secret."""


def require_loopback(request: web.Request) -> None:
    """Refuse whoever is not on this machine, as far as it shows, and was given our own address.

    Raises:
        web.HTTPForbidden: it is somebody else.
    """
    try:
        named = urlsplit(f"//{request.host}").hostname
    except ValueError:
        raise web.HTTPForbidden from None
    if not is_loopback_host(request.remote) or not is_loopback_host(named):
        raise web.HTTPForbidden
    if any(name in request.headers for name in _FORWARDED):
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "none") == "cross-site" and request.path != "/":
        raise web.HTTPForbidden


def require_this_machine(request: web.Request) -> None:
    """Refuse whoever is not on this machine, or does not know the console's secret.

    It comes in the cookie of our own pages, as a bearer token or in the query.

    Raises:
        web.HTTPForbidden: it is somebody else.
        ConsoleLocked: it is somebody without the secret.
    """
    require_loopback(request)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    shown = (
        request.cookies.get(console_cookie(request)),
        token.strip() if scheme.lower() == "bearer" else None,
        request.query.get(QUERY_NAME),
    )
    secret = request.app[CONSOLE_SECRET].encode()
    if not any(hmac.compare_digest(one.encode(errors="replace"), secret) for one in shown if one):
        raise ConsoleLocked


def console_cookie(request: web.Request) -> str:
    """Name of the cookie that keeps the secret; cookies know no ports, so the name does."""
    return f"footnote_console_{request.url.port}"


def require_own_page(request: web.Request) -> None:
    """Refuse a request that no page of ours sent.

    Raises:
        web.HTTPForbidden: it has another origin, or not the marks of our own script.
        ConsoleLocked: it comes without the secret.
    """
    require_this_machine(request)
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise web.HTTPForbidden
    if request.headers.get(ASKED_BY) != "1" or request.content_type != "application/json":
        raise web.HTTPForbidden


def require_own_form(request: web.Request) -> None:
    """Refuse a form that no page of ours sent, and no program that names our header.

    The origin of our forms is "null", for our pages send no referrer: a browser's word on the site counts.

    Raises:
        web.HTTPForbidden: it comes from elsewhere, or from a browser that does not say from where.
        ConsoleLocked: it comes without the secret.
    """
    require_this_machine(request)
    is_program = request.headers.get(ASKED_BY) == "1" and "Origin" not in request.headers
    if not is_program and request.headers.get("Sec-Fetch-Site") != "same-origin":
        raise web.HTTPForbidden


def plain(style_hash: str) -> dict[str, str]:
    """Headers of a page whose only resource is its own style sheet, known by its hash."""
    policy = f"default-src 'none'; base-uri 'none'; style-src 'sha256-{style_hash}'; frame-ancestors 'self'"
    return {**NO_STORE, "Content-Security-Policy": policy}


def inline(file: str) -> str:
    """Content-Disposition that shows a file under its own name (RFC 6266, RFC 8187)."""
    name = "".join(c for c in file.rsplit("/", 1)[-1] if c.isprintable() and c not in '"\\/')
    name = name.encode()[:150].decode(errors="ignore").strip() or "document.pdf"
    fallback = name.encode("ascii", "replace").decode().replace("?", "_").replace("%", "_")
    return f"inline; filename=\"{fallback}\"; filename*=UTF-8''{quote(name, safe='')}"
