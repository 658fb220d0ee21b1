"""Slack's OAuth endpoints: codes, expiring tokens, and refresh tokens valid once.

A call with an unknown token is refused; others are recorded with the token's installation.
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
# Seconds that Slack's tokens live with token rotation.
LIFETIME = 43_200
ORGANISATION = "E0GRID001"


@dataclass(frozen=True, slots=True)
class SlackCall:
    """A call of the Web API with a valid token."""

    method: str
    # Installation of the token.
    installation: str
    body: dict[str, Any]


@dataclass
class OAuthSlack:
    """Fake of the OAuth endpoints, with the state that tests inspect and change."""

    url: str = ""
    # Lifetime of new tokens in seconds; None: they never expire.
    lifetime: int | None = LIFETIME
    # Code -> installation, until it is exchanged.
    codes: dict[str, str] = field(default_factory=dict)
    # Valid token -> installation.
    tokens: dict[str, str] = field(default_factory=dict)
    # Unused refresh token -> installation.
    refreshers: dict[str, str] = field(default_factory=dict)
    calls: list[SlackCall] = field(default_factory=list)
    # Methods called with an invalid token.
    refused: list[str] = field(default_factory=list)
    # Grants of all calls of oauth.v2.access.
    exchanges: list[str] = field(default_factory=list)
    has_bot: bool = True
    is_down: bool = False
    # Blocks the issue of tokens until it is set.
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    made: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def api_url(self) -> str:
        """Value of ``SLACK_API_URL``."""
        return f"{self.url}/api/"

    def new_code(self, installation: str) -> str:
        """Return a code as after a user's consent."""
        self.made += 1
        code = f"code-{self.made}-CANARY"
        self.codes[code] = installation
        return code

    def called(self, method: str, installation: str) -> list[dict[str, Any]]:
        """Return the arguments of a method's calls with an installation's token."""
        return [one.body for one in self.calls if (one.method, one.installation) == (method, installation)]

    def calls_of(self, installation: str) -> list[SlackCall]:
        """Return every call with an installation's token."""
        return [one for one in self.calls if one.installation == installation]

    async def allow(self, request: web.Request) -> web.Response:
        """Grant consent for the workspace in the URL, and redirect the browser back."""
        query = request.query
        assert query["client_id"] == CLIENT_ID
        back = {"code": self.new_code(query["team"]), "state": query["state"]}
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(back)}")

    async def handle(self, request: web.Request) -> web.Response:
        """Handle a call of the Web API."""
        method = request.match_info["method"]
        if self.is_down and request.transport:
            request.transport.close()
            raise web.HTTPServiceUnavailable  # not received: the connection is closed
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
    """Serve the fake."""
    slack = OAuthSlack()
    app = web.Application()
    app.router.add_get("/oauth/v2/authorize", slack.allow)
    app.router.add_route("*", "/api/{method}", slack.handle)
    async with TestServer(app) as server:
        slack.url = str(server.make_url("")).rstrip("/")
        yield slack
