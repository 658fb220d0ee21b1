"""Console sign-in and sign-out under the public URL.

A sign-in in progress is stored nowhere. The browser gets a random key in a cookie; the OAuth state, the nonce
and the PKCE verifier are derived from that key. So any bot process can finish what another one began, tabs do
not interfere, and no other browser can finish it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.answers.citations.signed_links import Links
from bot.console_secret import QUERY_NAME
from bot.settings import revealed
from bot.sign_in_settings import Role, SignInSettings
from bot.web import security
from bot.web.security import RoleTooLow, SignInNeeded, Visitor, require_own_form, require_visitor
from bot.web.sign_in.openid_provider import LEEWAY_SECONDS, OpenIdProvider, ProviderUnavailable, SignInRefused
from bot.web.sign_in.sessions import SESSION_LIFETIME, Session, Sessions
from bot.web.templates import Templates
from storage.installations.console_sign_outs import EndedSessions
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database

CALLBACK, SIGN_OUT = "/console/sign-in/callback", "/console/sign-out"
# Time allowed for signing in at the provider.
SIGN_IN_SECONDS = 600
TOKENS_A_SECOND = 5
# Longest time that a browser waits behind other sign-ins.
MAX_WAIT = 2.0
# Longest path to return to; a longer one leads to the first page.
MAX_PATH_CHARS = 500
SESSION = web.RequestKey("session", Session)
_BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}")
_PATH = re.compile(rf"/[!-~]{{0,{MAX_PATH_CHARS - 1}}}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """Sign-in in progress, between the redirect to the provider and the callback."""

    browser_key: str
    id: str
    # Path to return to, with its query.
    path: str
    # Unix seconds.
    until: int

    @property
    def state(self) -> str:
        """OAuth state: id, return path and expiry with a MAC."""
        body = json.dumps([self.id, self.path, self.until], separators=(",", ":")).encode()
        return f"{_encode(body)}.{self.derived('state', body)}"

    @property
    def nonce(self) -> str:
        """Nonce that the ID token has to repeat."""
        return self.derived("nonce", self.id.encode())

    @property
    def verifier(self) -> str:
        """PKCE code verifier (RFC 7636): proves to the token endpoint that the code was issued to us."""
        return self.derived("verifier", self.id.encode())

    def derived(self, purpose: str, of: bytes) -> str:
        """Return a MAC by the browser's key, as 43 characters."""
        return _encode(hmac.digest(self.browser_key.encode(), f"{purpose}\0".encode() + of, hashlib.sha256))

    @classmethod
    def read(cls, browser_key: str, state: str, now: float) -> PendingSignIn | None:
        """Return the sign-in that this browser began with this state, None if there is none or it expired."""
        try:
            id_, path, until = json.loads(base64.urlsafe_b64decode(state.partition(".")[0] + "==="))
            begun = cls(browser_key, id_, path, until)
            is_ours = hmac.compare_digest(begun.state.encode(), state.encode())
            # Anyone can make up a key and sign any state with it, so check the fields, too.
            is_whole = all((_BROWSER_KEY.fullmatch(browser_key), _ID.fullmatch(id_), _PATH.fullmatch(path)))
            is_timely = now < until <= now + SIGN_IN_SECONDS + LEEWAY_SECONDS
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return begun if is_ours and is_whole and is_timely else None


class TokenRequestLimiter:
    """Limit on token requests: one per sign-in, and a few per second overall.

    The browser chooses its key, so anyone can make up any number of sign-ins in progress.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._due = 0.0

    async def acquire(self, begun: PendingSignIn) -> None:
        """Wait until a returning sign-in may request its token.

        Raises:
            SignInRefused: its state was used before.
            ProviderUnavailable: too many are waiting.
        """
        self._used = {state: until for state, until in self._used.items() if time.time() < until}
        if begun.state in self._used:
            raise SignInRefused("its state was used before")
        # Rate limit by GCRA (ITU-T I.371): a burst of one second's worth, then evenly spaced.
        now = time.monotonic()
        wait = max(self._due, now) - now - 1
        if wait > MAX_WAIT:
            raise ProviderUnavailable("too many sign-ins at once")
        self._used[begun.state] = begun.until
        self._due = max(self._due, now) + 1 / TOKENS_A_SECOND
        await asyncio.sleep(max(wait, 0))


class SignIn:
    """Routes of sign-in and sign-out, and the middleware that identifies the visitor."""

    def __init__(self, settings: SignInSettings, links: Links, database: Database, pages: Templates) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._provider = OpenIdProvider(
            self._issuer,
            settings.oidc_client_id or "",
            revealed(settings.oidc_client_secret),
            settings.oidc_scopes,
        )
        self._sessions = Sessions(settings, links.keys, EndedSessions(database), links.clock)
        self._token_requests = TokenRequestLimiter()
        self._audit = AuditLog(database)
        self._pages = pages
        self._public_url = links.public_url
        parts = urlsplit(links.public_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._is_secure = parts.scheme == "https"
        # Cookies are shared by all ports of a host; __Host- cookies require TLS and their exact host.
        self._cookie = "__Host-footnote_{}" if self._is_secure else f"footnote_{{}}_{parts.port or 80}"

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of sign-in and sign-out."""
        return [
            web.get(CALLBACK, self.finish, name="sign_in_callback", allow_head=False),
            web.get(SIGN_OUT, self.ask_to_sign_out, name="sign_out_page"),
            web.post(SIGN_OUT, self.sign_out, name="sign_out"),
        ]

    def middleware(self) -> Middleware:
        """Return a middleware that identifies the visitor, or redirects a browser to the provider."""

        @web.middleware
        async def know_visitor(request: web.Request, handler: Handler) -> web.StreamResponse:
            is_console = request.path == "/" or request.path.startswith("/console/")
            if not is_console or request.path == CALLBACK:
                return await handler(request)
            await self._note_visitor(request)
            try:
                return await handler(request)
            except SignInNeeded:
                if _is_page_load(request):
                    return await self._begin(request)
                refused = self._page(401, "needed")
                refused.headers["WWW-Authenticate"] = "OpenIDConnect"
                return refused
            except RoleTooLow:
                return self._page(403, "reader")

        return know_visitor

    async def _note_visitor(self, request: web.Request) -> None:
        cookie = request.cookies.get(self._cookie.format("session"))
        session = await self._sessions.verify(cookie) if cookie else None
        role = self._sessions.role(session) if session else None
        if session and role:
            request[SESSION] = session
            channels = self._sessions.channels(session) if role is Role.READER else None
            actor = self._sessions.actor(session)
            request[security.VISITOR] = Visitor(actor, role, session.person, channels)

    async def _begin(self, request: web.Request) -> web.Response:
        """Redirect a browser to the provider; it comes back to the requested page."""
        name = self._cookie.format("sign_in")
        held = request.cookies.get(name, "")
        key = held if _BROWSER_KEY.fullmatch(held) else secrets.token_urlsafe(32)
        # The console's secret must not reach the provider.
        path = str(request.rel_url.without_query_params(QUERY_NAME))
        path = path if len(path) <= MAX_PATH_CHARS else "/"
        begun = PendingSignIn(key, secrets.token_hex(16), path, int(time.time()) + SIGN_IN_SECONDS)
        back = f"{self._public_url}{CALLBACK}"
        try:
            url = await self._provider.authorization_url(back, begun.state, begun.nonce, begun.verifier)
        except ProviderUnavailable as error:
            _log.warning("console sign-in unavailable: %s", error)
            return self._page(503, "outage")
        response = web.Response(status=302, headers={**security.NO_STORE, "Location": url})
        # Lax: the browser has to send it when it comes back from the provider's site.
        self._set_cookie(response, name, key, SIGN_IN_SECONDS, "Lax")
        return response

    async def finish(self, request: web.Request) -> web.Response:
        """Complete the sign-in on return from the provider, and lead on to the requested page."""
        query = request.query
        key = request.cookies.get(self._cookie.format("sign_in"), "")
        begun = PendingSignIn.read(key, query.get("state", ""), time.time())
        if begun is None or query.get("iss", self._issuer) != self._issuer:
            return self._page(400, "stale")
        if "code" not in query:
            return self._page(400, "refused")
        back = f"{self._public_url}{CALLBACK}"
        try:
            await self._token_requests.acquire(begun)
            claims = await self._provider.exchange_code(query["code"], back, begun.nonce, begun.verifier)
        except ProviderUnavailable as error:
            _log.warning("console sign-in failed: %s", error)
            return self._page(503, "outage")
        except SignInRefused as error:
            _log.warning("console sign-in refused: %s", error)
            return self._page(400, "refused")
        session = self._sessions.create(claims)
        role = self._sessions.role(session)
        said = (self._sessions.actor(session), "sign in", "", role.name.lower() if role else "")
        await self._audit.record(AuditedAction(*said, is_done=role is not None))
        if role is None:
            return self._page(403, "no role")
        # A page that leads on, not a redirect: that would count as cross-site and lack the SameSite=Strict
        # cookie.
        response = self._pages.plain("signed_in.html", path=f"{self._public_url}{begun.path}")
        name, life = self._cookie.format("session"), int(SESSION_LIFETIME.total_seconds())
        self._set_cookie(response, name, self._sessions.sign(session), life, "Strict")
        return response

    async def ask_to_sign_out(self, request: web.Request) -> web.Response:
        """Return the sign-out page."""
        return self._page(200, "sign out?", name=require_visitor(request).name)

    async def sign_out(self, request: web.Request) -> web.Response:
        """End the session."""
        require_own_form(request, Role.READER)
        if SESSION in request:
            await self._sessions.end(request[SESSION])
        response = self._page(200, "signed out")
        name = self._cookie.format("session")
        response.del_cookie(name, path="/", secure=self._is_secure, httponly=True, samesite="Strict")
        return response

    def _page(self, status: int, reason: str, name: str = "") -> web.Response:
        return self._pages.sign_in(status, reason=reason, home=f"{self._public_url}/", name=name)

    def _set_cookie(self, response: web.Response, name: str, value: str, seconds: int, samesite: str) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path="/", secure=self._is_secure, httponly=True, samesite=samesite
        )


def _is_page_load(request: web.Request) -> bool:
    """True if a person opens a page, as opposed to a script or subresource request."""
    is_navigation = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return request.method == "GET" and is_navigation and "text/html" in request.headers.get("Accept", "")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
