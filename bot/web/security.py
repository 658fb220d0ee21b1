"""Response headers and console access: this machine with its secret, or people who signed in.

A foreign page may send requests to a loopback address, or resolve its own name to it (DNS rebinding), and a
proxy may expose it to the world. Most of these show in the request headers checked here. The secret covers
the rest: a proxy that rewrites Host, or another user of the machine.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from aiohttp import web

from bot.chat.conversation.queue_limits import QuestionOrigin, QuestionRateLimiter
from bot.console_secret import QUERY_NAME
from bot.core.models import LOCAL_ASKER
from bot.loopback import is_loopback_host
from bot.sign_in_settings import Role
from storage.models import Channel
from storage.readers.registry import READERS


@dataclass(frozen=True, slots=True)
class Visitor:
    """User of the console."""

    # Actor in the audit log.
    actor: str
    role: Role
    # Display name; '' for anyone who uses this machine's secret.
    name: str = ""
    # Names or tenants of the channels that they may see; None: all.
    channels: frozenset[str] | None = None

    def may_see(self, channel: Channel) -> bool:
        """True if the visitor may see a channel with its documents and questions."""
        return self.channels is None or not self.channels.isdisjoint({channel.name, channel.tenant})


# Anyone who knows the secret.
LOCAL_VISITOR = Visitor(LOCAL_ASKER, Role.ADMIN)
# Secret of an application's console; without it, the console is closed to this machine.
CONSOLE_SECRET = web.AppKey("console_secret", str)
# Origin where people sign in to an application's console; without it, there is no sign-in.
PUBLIC_ORIGIN = web.AppKey("public_origin", str)
# Signed-in visitor of a request.
VISITOR = web.RequestKey("visitor", Visitor)

# Request headers that reveal a proxy.
_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
# Custom request header of our script: a foreign page needs a CORS preflight to send it.
SCRIPT_HEADER = "X-Footnote-Console"

# Default response headers: nothing is loaded, framed or sent as a referrer.
BASE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow, noarchive, noimageindex",
}
# Added if the public URL is https.
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
# Responses that show questions, answers or documents are not cached.
NO_STORE = {"Cache-Control": "private, no-store"}

_PAGE = "default-src 'none'; base-uri 'none'; img-src 'self'; script-src 'self'; style-src 'self'; "
# Viewer page, framed by the console: renews its link, and submits a form to open a newer version.
VIEWER_HEADERS = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "connect-src 'self'; form-action 'self'; frame-ancestors 'self'",
}
# Console page: sends requests to this server and frames the viewer.
CONSOLE_HEADERS = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE
    + "form-action 'none'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'",
}
# Admin pages: submit forms and uploads to this server.
ADMIN_HEADERS = {
    **NO_STORE,
    "Content-Security-Policy": _PAGE + "form-action 'self'; connect-src 'self'; frame-ancestors 'none'",
}
# Pictures of figures: embedded in the pages of chat platforms.
EMBEDDED_HEADERS = {"Cross-Origin-Resource-Policy": "cross-origin"}
# Static files: their names contain a content hash.
STATIC_HEADERS = {"Cache-Control": "public, max-age=31536000, immutable"}


class ConsoleLocked(web.HTTPUnauthorized):
    """The console was requested without its secret."""


class SignInNeeded(web.HTTPUnauthorized):
    """The console was requested without sign-in."""


class RoleTooLow(web.HTTPForbidden):
    """The signed-in person's role does not permit this."""


def require_loopback(request: web.Request) -> None:
    """Reject a request that shows signs of not coming from this machine to a loopback name.

    Raises:
        web.HTTPForbidden: it comes from elsewhere.
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
    """Reject a request from another machine or without the console's secret.

    The secret comes in our cookie, as a bearer token or in the query.

    Raises:
        web.HTTPForbidden: it comes from elsewhere.
        ConsoleLocked: it lacks the secret.
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
    """Return the name of the secret's cookie, which includes the port: cookies are shared by all ports."""
    return f"footnote_console_{request.url.port}"


def require_visitor(request: web.Request, role: Role = Role.READER) -> Visitor:
    """Return the visitor of a console request; anyone with this machine's secret is an admin.

    Raises:
        web.HTTPForbidden, ConsoleLocked: as ``require_this_machine``, if sign-in is off.
        SignInNeeded: the visitor is not signed in.
        RoleTooLow: the visitor's role is below ``role``.
    """
    visitor = request.get(VISITOR) or _local_visitor(request)
    if visitor.role < role:
        raise RoleTooLow
    return visitor


def enforce_rate_limit(rates: QuestionRateLimiter, visitor: Visitor) -> None:
    """Apply the rate limit to a signed-in visitor; anyone with this machine's secret is exempt.

    Raises:
        web.HTTPTooManyRequests: too many questions within a minute.
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
    """Return the Origin that browsers send from our pages."""
    return request.app[PUBLIC_ORIGIN] if VISITOR in request else f"http://{request.host}"


def require_own_page(request: web.Request, role: Role = Role.READER) -> Visitor:
    """Reject a request that our own script did not send (CSRF); return its visitor.

    Raises:
        web.HTTPForbidden: another origin, or our script's header or content type is missing.
        web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
    """
    visitor = require_visitor(request, role)
    origin = request.headers.get("Origin")
    if origin is not None and origin != _own_origin(request):
        raise web.HTTPForbidden
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise web.HTTPForbidden
    if request.headers.get(SCRIPT_HEADER) != "1" or request.content_type != "application/json":
        raise web.HTTPForbidden
    return visitor


def require_own_form(request: web.Request, role: Role = Role.ADMIN) -> Visitor:
    """Reject a form that neither our page nor a program with our header sent (CSRF); return its visitor.

    The Origin of our forms is "null" because our pages send no referrer, so Sec-Fetch-Site decides.

    Raises:
        web.HTTPForbidden: it comes from another site, or from a browser that does not send Sec-Fetch-Site.
        web.HTTPForbidden, web.HTTPUnauthorized: as ``require_visitor``.
    """
    visitor = require_visitor(request, role)
    is_program = request.headers.get(SCRIPT_HEADER) == "1" and "Origin" not in request.headers
    if not is_program and request.headers.get("Sec-Fetch-Site") != "same-origin":
        raise web.HTTPForbidden
    return visitor


def inline_style_headers(style_hash: str) -> dict[str, str]:
    """Return the headers of a page whose only resource is an inline style sheet, allowed by hash."""
    policy = f"default-src 'none'; base-uri 'none'; style-src 'sha256-{style_hash}'; frame-ancestors 'self'"
    return {**NO_STORE, "Content-Security-Policy": policy}


def document_headers(file: str) -> dict[str, str]:
    """Return the headers of a document's file, shown inline; sandboxed, so that its scripts do not run."""
    kind = READERS.type_of(file)
    return {
        **NO_STORE,
        "Content-Type": kind.name if kind else "application/octet-stream",
        "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'self'",
        "Content-Disposition": inline_disposition(file),
    }


def inline_disposition(file: str) -> str:
    """Return a Content-Disposition that shows a file inline under its name (RFC 6266, RFC 8187)."""
    name = "".join(c for c in file.rsplit("/", 1)[-1] if c.isprintable() and c not in '"\\/')
    name = name.encode()[:150].decode(errors="ignore").strip() or "document"
    fallback = name.encode("ascii", "replace").decode().replace("?", "_").replace("%", "_")
    return f"inline; filename=\"{fallback}\"; filename*=UTF-8''{quote(name, safe='')}"
