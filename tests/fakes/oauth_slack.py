"""The part of slack.com that installs apps: codes, tokens that end, refresh tokens that are good once.

A call with a token that it never gave is refused; of every other one it keeps whose token it was.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer

CLIENT_ID, CLIENT_SECRET = "111.222", "client-secret-CANARY"
# Seconds that Slack's tokens live when they rotate.
LIFETIME = 43_200
ORGANISATION = "E0GRID001"


@dataclass(frozen=True, slots=True)
class SlackCall:
    """One call of the Web API with a token that is good."""

    method: str
    # Whose token it was.
    installation: str
    body: dict[str, Any]


@dataclass
class OAuthSlack:
    """What a test may look at and turn."""

    url: str = ""
    # Of the tokens that are given; None: they never end.
    lifetime: int | None = LIFETIME
    # Code -> installation, until it is exchanged.
    codes: dict[str, str] = field(default_factory=dict)
    # Token -> installation, of those that are good.
    tokens: dict[str, str] = field(default_factory=dict)
    # Refresh token -> installation, of those that were not used yet.
    refreshers: dict[str, str] = field(default_factory=dict)
    calls: list[SlackCall] = field(default_factory=list)
    # Methods that were called with a token that is not good.
    refused: list[str] = field(default_factory=list)
    # Every call of oauth.v2.access: what was exchanged.
    exchanges: list[str] = field(default_factory=list)
    has_bot: bool = True
    is_down: bool = False
    # A token is given only while it is set.
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    made: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def api_url(self) -> str:
        """What ``SLACK_API_URL`` is set to."""
        return f"{self.url}/api/"

    def new_code(self, installation: str) -> str:
        """Return a code as somebody gets it who allows the installation."""
        self.made += 1
        code = f"code-{self.made}-CANARY"
        self.codes[code] = installation
        return code

    def called(self, method: str, installation: str) -> list[dict[str, Any]]:
        """What a method was called with by an installation's token."""
        return [one.body for one in self.calls if (one.method, one.installation) == (method, installation)]

    def calls_of(self, installation: str) -> list[SlackCall]:
        """Return every call with an installation's token."""
        return [one for one in self.calls if one.installation == installation]

    async def allow(self, request: web.Request) -> web.Response:
        """Somebody of the workspace that the URL names allows it, and their browser is sent back."""
        query = request.query
        assert query["client_id"] == CLIENT_ID
        back = {"code": self.new_code(query["team"]), "state": query["state"]}
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(back)}")

    async def handle(self, request: web.Request) -> web.Response:
        """One call of the Web API."""
        method = request.match_info["method"]
        if self.is_down and request.transport:
            request.transport.close()
            raise web.HTTPServiceUnavailable  # which nobody hears
        body = dict(await request.post())
        if request.content_type == "application/json":
            body = await request.json()
        if method == "oauth.v2.access":
            return await self._exchange(request, body)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(body.get("token"))
        if (installation := self.tokens.get(token)) is None:
            self.refused.append(method)
            return web.json_response({"ok": False, "error": "invalid_auth"})
        self.calls.append(SlackCall(method, installation, body))
        return web.json_response({"ok": True, **self._reply(method, installation, body)})

    def _reply(self, method: str, installation: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == "auth.test":
            return {"bot_id": "B0BOT", "url": "https://example.slack.com/", **_place(installation)}
        if method == "conversations.info":
            return {"channel": {"id": body["channel"], "name": f"of-{installation.lower()}"}}
        return {"channel": body.get("channel"), "ts": f"1700000000.{len(self.calls):06}"}

    async def _exchange(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        sent = request.headers.get("Authorization", "").removeprefix("Basic ")
        if base64.b64decode(sent).decode() != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return web.json_response({"ok": False, "error": "bad_client_secret"})
        is_refresh = body.get("grant_type") == "refresh_token"
        given = str(body["refresh_token"] if is_refresh else body["code"])
        self.exchanges.append(given)
        found = (self.refreshers if is_refresh else self.codes).pop(given, None)
        if found is None:
            error = "invalid_refresh_token" if is_refresh else "invalid_code"
            return web.json_response({"ok": False, "error": error})
        await self.gate.wait()
        return web.json_response({"ok": True, **self._new_tokens(found)})

    def _new_tokens(self, installation: str) -> dict[str, Any]:
        self.made += 1
        place = _place(installation)
        reply: dict[str, Any] = {
            "app_id": "A0FOOT001",
            "authed_user": {"id": "U0ADMIN01"},
            "scope": "chat:write",
            "token_type": "bot",
            "bot_user_id": f"U{installation}"[:11],
            "team": None if installation == ORGANISATION else {"id": installation, "name": place["team"]},
            "enterprise": {"id": ORGANISATION, "name": "Grid"} if installation == ORGANISATION else None,
            "is_enterprise_install": installation == ORGANISATION,
        }
        if not self.has_bot:
            return reply
        reply["access_token"] = f"xoxb-{installation}-{self.made}-CANARY"
        self.tokens[reply["access_token"]] = installation
        if self.lifetime is not None:
            reply["refresh_token"] = f"xoxe-1-{installation}-{self.made}-CANARY"
            reply["expires_in"] = self.lifetime
            self.refreshers[reply["refresh_token"]] = installation
        return reply


def _place(installation: str) -> dict[str, str]:
    return {"team_id": installation, "team": f"Workspace {installation}"}


@asynccontextmanager
async def oauth_slack() -> AsyncIterator[OAuthSlack]:
    """Serves it."""
    slack = OAuthSlack()
    app = web.Application()
    app.router.add_get("/oauth/v2/authorize", slack.allow)
    app.router.add_route("*", "/api/{method}", slack.handle)
    async with TestServer(app) as server:
        slack.url = str(server.make_url("")).rstrip("/")
        yield slack
