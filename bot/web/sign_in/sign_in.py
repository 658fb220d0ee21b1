"""Signs people in to the console under the public URL: off to the provider, back, and out again.

Nothing is kept of a sign-in that was begun. The browser gets a random key in a cookie; the state that goes to
the provider and back, the nonce and the PKCE verifier are derived from that key. So any bot finishes what
another one began, several tabs do not disturb one another, and no other browser finishes it.
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

from bot.console_secret import QUERY_NAME
from bot.core.citations.signed_links import Links
from bot.settings import revealed
from bot.sign_in_settings import Role, SignInSettings
from bot.web import security
from bot.web.security import RoleTooLow, SignInNeeded, Visitor, require_own_form, require_visitor
from bot.web.sign_in.openid_provider import LEEWAY_SECONDS, OpenIdProvider, ProviderUnavailable, SignInRefused
from bot.web.sign_in.sessions import LIFE, Session, Sessions
from bot.web.templates import Templates
from storage.installations.console_sign_outs import SignOuts
from storage.sql.audit import AuditedAction, AuditLog
from storage.sql.database import Database

CALLBACK, SIGN_OUT = "/console/sign-in/callback", "/console/sign-out"
# That somebody may take for their sign-in at the provider.
BEGUN_SECONDS = 600
TOKENS_A_SECOND = 5
# Seconds for which a browser waits behind others that sign in.
MAX_WAIT = 2.0
# Of the page that somebody is led back to; from a longer one to the first page.
MAX_PATH_CHARS = 500
SESSION = web.RequestKey("session", Session)
_BROWSER_KEY = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}")
_PATH = re.compile(rf"/[!-~]{{0,{MAX_PATH_CHARS - 1}}}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """A sign-in between leaving for the provider and coming back."""

    browser_key: str
    id: str
    # Where it leads back to, with its query.
    path: str
    # Unix seconds.
    until: int

    @property
    def state(self) -> str:
        """What goes to the provider and comes back."""
        body = json.dumps([self.id, self.path, self.until], separators=(",", ":")).encode()
        return f"{_encode(body)}.{self.derived('state', body)}"

    @property
    def nonce(self) -> str:
        """What the ID token repeats."""
        return self.derived("nonce", self.id.encode())

    @property
    def verifier(self) -> str:
        """What proves to the token endpoint that the code was given to us (RFC 7636)."""
        return self.derived("verifier", self.id.encode())

    def derived(self, purpose: str, of: bytes) -> str:
        """Return a MAC by the browser's key, 43 characters."""
        return _encode(hmac.digest(self.browser_key.encode(), f"{purpose}\0".encode() + of, hashlib.sha256))

    @classmethod
    def read(cls, browser_key: str, state: str, now: float) -> BegunSignIn | None:
        """Return the sign-in that this browser began with this state; None: it did not, or too long ago."""
        try:
            id_, path, until = json.loads(base64.urlsafe_b64decode(state.partition(".")[0] + "==="))
            begun = cls(browser_key, id_, path, until)
            is_ours = hmac.compare_digest(begun.state.encode(), state.encode())
            # Whoever makes up a key can sign any state with it.
            is_whole = all((_BROWSER_KEY.fullmatch(browser_key), _ID.fullmatch(id_), _PATH.fullmatch(path)))
            is_timely = now < until <= now + BEGUN_SECONDS + LEEWAY_SECONDS
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return begun if is_ours and is_whole and is_timely else None


class Callbacks:
    """Lets each begun sign-in ask the provider for its token once, and all of them a few times a second.

    A browser's key is its own choice, so whoever wants can make up any number of begun sign-ins.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._due = 0.0

    async def use_up(self, begun: BegunSignIn) -> None:
        """Return when a sign-in that comes back may ask for its token.

        Raises:
            SignInRefused: it has come back before.
            ProviderUnavailable: too many are waiting.
        """
        self._used = {state: until for state, until in self._used.items() if time.time() < until}
        if begun.state in self._used:
            raise SignInRefused("its state was used before")
        # GCRA, as in ITU-T I.371: some at once, and behind them one after the other.
        now = time.monotonic()
        wait = max(self._due, now) - now - 1
        if wait > MAX_WAIT:
            raise ProviderUnavailable("too many sign-ins at once")
        self._used[begun.state] = begun.until
        self._due = max(self._due, now) + 1 / TOKENS_A_SECOND
        await asyncio.sleep(max(wait, 0))


class SignIn:
    """The routes of sign-in and sign-out, and the middleware that knows who is signed in."""

    def __init__(self, settings: SignInSettings, links: Links, database: Database, pages: Templates) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._provider = OpenIdProvider(
            self._issuer,
            settings.oidc_client_id or "",
            revealed(settings.oidc_client_secret),
            settings.oidc_scopes,
        )
        self._sessions = Sessions(settings, links.keys, SignOuts(database), links.clock)
        self._callbacks = Callbacks()
        self._audit = AuditLog(database)
        self._pages = pages
        self._public_url = links.public_url
        parts = urlsplit(links.public_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._is_secure = parts.scheme == "https"
        # Cookies know no ports, and a browser takes a __Host- cookie by TLS and from its own host alone.
        self._cookie = "__Host-footnote_{}" if self._is_secure else f"footnote_{{}}_{parts.port or 80}"

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of sign-in and sign-out."""
        return [
            web.get(CALLBACK, self.finish, name="sign_in_callback", allow_head=False),
            web.get(SIGN_OUT, self.ask_to_sign_out, name="sign_out_page"),
            web.post(SIGN_OUT, self.sign_out, name="sign_out"),
        ]

    def middleware(self) -> Middleware:
        """A middleware that notes who is signed in, and sends a browser that needs it to the provider."""

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
        session = await self._sessions.open(cookie) if cookie else None
        role = self._sessions.role(session) if session else None
        if session and role:
            request[SESSION] = session
            request[security.VISITOR] = Visitor(self._sessions.actor(session), role, session.person)

    async def _begin(self, request: web.Request) -> web.Response:
        """Send a browser to the provider; it comes back to the page that it asked for."""
        name = self._cookie.format("sign_in")
        held = request.cookies.get(name, "")
        key = held if _BROWSER_KEY.fullmatch(held) else secrets.token_urlsafe(32)
        # The provider is told nothing of the secret, wherever somebody opened the address that holds it.
        path = str(request.rel_url.without_query_params(QUERY_NAME))
        path = path if len(path) <= MAX_PATH_CHARS else "/"
        begun = BegunSignIn(key, secrets.token_hex(16), path, int(time.time()) + BEGUN_SECONDS)
        back = f"{self._public_url}{CALLBACK}"
        try:
            url = await self._provider.authorization_url(back, begun.state, begun.nonce, begun.verifier)
        except ProviderUnavailable as error:
            _log.warning("nobody can sign in to the console: %s", error)
            return self._page(503, "outage")
        response = web.Response(status=302, headers={**security.NO_STORE, "Location": url})
        # Lax: it has to come with the browser's way back from the provider's site.
        self._set_cookie(response, name, key, BEGUN_SECONDS, "Lax")
        return response

    async def finish(self, request: web.Request) -> web.Response:
        """Take a browser that comes back from the provider, and lead it to the page that it asked for."""
        query = request.query
        key = request.cookies.get(self._cookie.format("sign_in"), "")
        begun = BegunSignIn.read(key, query.get("state", ""), time.time())
        if begun is None or query.get("iss", self._issuer) != self._issuer:
            return self._page(400, "stale")
        if "code" not in query:
            return self._page(400, "refused")
        back = f"{self._public_url}{CALLBACK}"
        try:
            await self._callbacks.use_up(begun)
            claims = await self._provider.redeem(query["code"], back, begun.nonce, begun.verifier)
        except ProviderUnavailable as error:
            _log.warning("a sign-in to the console failed: %s", error)
            return self._page(503, "outage")
        except SignInRefused as error:
            _log.warning("a sign-in to the console was refused: %s", error)
            return self._page(400, "refused")
        session = self._sessions.begin(claims)
        role = self._sessions.role(session)
        said = (self._sessions.actor(session), "sign in", "", role.name.lower() if role else "")
        await self._audit.keep(AuditedAction(*said, is_done=role is not None))
        if role is None:
            return self._page(403, "no role")
        # A page that leads on, and no redirect: that would be a step of the provider's site, without the
        # strict cookie.
        response = self._pages.plain("signed_in.html", path=f"{self._public_url}{begun.path}")
        name, life = self._cookie.format("session"), int(LIFE.total_seconds())
        self._set_cookie(response, name, self._sessions.seal(session), life, "Strict")
        return response

    async def ask_to_sign_out(self, request: web.Request) -> web.Response:
        """Return the page with the button."""
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
    """True if somebody opens a page, as no script and no part of a page does."""
    is_navigation = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return request.method == "GET" and is_navigation and "text/html" in request.headers.get("Accept", "")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
