"""The headers of every response, and who may use the console: this machine with its secret, or who signed in.

A foreign page may send requests to a loopback address, or give its own name that address (DNS rebinding), and
a proxy may bring the whole world. Most of these show in the request headers checked here. What does not, as
a proxy that rewrites Host or another user of the machine, lacks the secret.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from aiohttp import web

from bot.console_secret import QUERY_NAME
from bot.core.conversation.queue_limits import QuestionOrigin, QuestionRates
from bot.core.models import LOCAL_ASKER
from bot.loopback import is_loopback_host
from bot.sign_in_settings import Role


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who uses the console."""

    # As the audit calls them.
    actor: str
    role: Role
    # As a page calls them; nothing of who knows this machine's secret.
    name: str = ""


# Whoever knows the secret.
LOCAL_VISITOR = Visitor(LOCAL_ASKER, Role.ADMIN)
# What opens the console of an application to this machine; one without it is closed to it.
CONSOLE_SECRET = web.AppKey("console_secret", str)
# Where people sign in to the console of an application; one without it knows no sign-in.
PUBLIC_ORIGIN = web.AppKey("public_origin", str)
# Who signed in, of a request of theirs.
VISITOR = web.RequestKey("visitor", Visitor)

# Request headers by which a proxy shows.
_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
# Request header of our own script: a browser asks us before a foreign page may send it.
ASKED_BY = "X-Footnote-Console"

# Of each response, where it does not set them itself: nothing is loaded, framed or sent as a referrer.
EVERYWHERE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow, noarchive, noimageindex",
}
# Beside those, where the public URL is https.
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
# Of what shows questions, answers or documents: no cache keeps it.
NO_STORE = {"Cache-Control": "private, no-store"}

_PAGE = "default-src 'none'; base-uri 'none'; img-src 'self'; script-src 'self'; style-src 'self'; "
# Of the viewer's page, which the console frames: it renews its link, and leads to a newer version.
VIEWER = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "connect-src 'self'; form-action 'self'; frame-ancestors 'self'",
}
# Of the console's page, which asks this server and frames the viewer.
CONSOLE = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE
    + "form-action 'none'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'",
}
# Of the console's other pages, whose forms and uploads are sent to this server.
ADMIN = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "form-action 'self'; connect-src 'self'; frame-ancestors 'none'",
}
# Of a PDF, whose scripts run nowhere.
PDF = {
    "Content-Type": "application/pdf",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'self'",
}
# Of a figure's picture, which the pages of chat platforms show.
EMBEDDED = {"Cross-Origin-Resource-Policy": "cross-origin"}
# Of a static file: its name changes with its content.
STATIC = {"Cache-Control": "public, max-age=31536000, immutable"}


class ConsoleLocked(web.HTTPUnauthorized):
    """Somebody asks for the console without its secret."""


class SignInNeeded(web.HTTPUnauthorized):
    """Somebody asks for the console who did not sign in."""


class RoleTooLow(web.HTTPForbidden):
    """Somebody who signed in may not do this."""


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


def require_visitor(request: web.Request, role: Role = Role.READER) -> Visitor:
    """Who uses the console by a request; whoever knows the secret of this machine may everything.

    Raises:
        web.HTTPForbidden, ConsoleLocked: as ``require_this_machine``, where nobody can sign in.
        SignInNeeded: nobody is known.
        RoleTooLow: they may less than ``role``.
    """
    visitor = request.get(VISITOR) or _local_visitor(request)
    if visitor.role < role:
        raise RoleTooLow
    return visitor


def require_turn(rates: QuestionRates, visitor: Visitor) -> None:
    """Count a question of somebody who signed in; whoever knows this machine's secret asks as they like.

    Raises:
        web.HTTPTooManyRequests: they asked too many within a minute.
    """
    origin = QuestionOrigin("" if visitor is LOCAL_VISITOR else visitor.actor)
    if rates.is_beyond(origin):
        raise web.HTTPTooManyRequests
    rates.count(origin)


def _local_visitor(request: web.Request) -> Visitor:
    if PUBLIC_ORIGIN not in request.app:
        require_this_machine(request)
        return LOCAL_VISITOR
    try:
        if CONSOLE_SECRET in request.app:
            require_this_machine(request)
            return LOCAL_VISITOR
    except ConsoleLocked:
        if request.host != urlsplit(request.app[PUBLIC_ORIGIN]).netloc:
            raise
    except web.HTTPForbidden:
        pass
    raise SignInNeeded


def _own_origin(request: web.Request) -> str:
    """What a browser names as the origin of our pages."""
    return request.app[PUBLIC_ORIGIN] if VISITOR in request else f"http://{request.host}"


def require_own_page(request: web.Request, role: Role = Role.READER) -> Visitor:
    """Refuse a request that no page of ours sent; returns whose it is.

    Raises:
        web.HTTPForbidden: it has another origin, or not the marks of our own script.
        web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
    """
    visitor = require_visitor(request, role)
    origin = request.headers.get("Origin")
    if origin is not None and origin != _own_origin(request):
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise web.HTTPForbidden
    if request.headers.get(ASKED_BY) != "1" or request.content_type != "application/json":
        raise web.HTTPForbidden
    return visitor


def require_own_form(request: web.Request, role: Role = Role.ADMIN) -> Visitor:
    """Refuse a form that no page of ours sent, and no program that names our header; returns whose it is.

    The origin of our forms is "null", for our pages send no referrer: a browser's word on the site counts.

    Raises:
        web.HTTPForbidden: it comes from elsewhere, or from a browser that does not say from where.
        web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
    """
    visitor = require_visitor(request, role)
    is_program = request.headers.get(ASKED_BY) == "1" and "Origin" not in request.headers
    if not is_program and request.headers.get("Sec-Fetch-Site") != "same-origin":
        raise web.HTTPForbidden
    return visitor


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
