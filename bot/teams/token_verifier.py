"""Checks that a request comes from the Bot Framework: its token, signed by a key endorsed for Teams.

Keys are fetched with a deadline, kept for a day, and fetched again for a key id nobody knows, but not
more often than once a minute: whoever makes up key ids makes us fetch nothing, and nobody else wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import jwt

OPENID = "https://login.botframework.com/v1/.well-known/openidconfiguration"
ISSUER = "https://api.botframework.com"
CHANNEL = "msteams"
DAY = 24 * 3600.0
MINUTE = 60.0
# Seconds that clocks may differ, as Microsoft allows.
LEEWAY = 300


class TokenRefused(Exception):
    """The token proves nothing: 401."""


class KeysUnavailable(Exception):
    """Microsoft's keys cannot be had right now: 503, so that the message is sent again."""


class SigningKeys:
    """The Bot Framework's public keys that are endorsed for Teams, by key id."""

    def __init__(
        self, openid_url: str = OPENID, timeout: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._openid_url = openid_url
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._tried_at: float | None = None
        self._fetched_at = -DAY
        self._refreshing: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> jwt.PyJWK:
        """Return the key of this id; only one that nobody knows waits for Microsoft.

        Raises:
            TokenRefused: there is no such key, or it is not endorsed for Teams.
            KeysUnavailable: no key was ever fetched, and none can be now.
        """
        if key_id not in self._keys:
            await self._refreshed()
        elif self._clock() - self._fetched_at > DAY:
            self._begin_refresh()
        if not self._keys:
            raise KeysUnavailable
        if key_id not in self._keys:
            raise TokenRefused("unknown key")
        return self._keys[key_id]

    async def are_there(self) -> bool:
        """True if any are known, now that they were asked for: without them no message can come in."""
        if not self._keys:
            await self._refreshed()
        return bool(self._keys)

    async def _refreshed(self) -> None:
        """Wait for the fetch that is on its way, or for one that begins now; another may wait for it, too."""
        self._begin_refresh()
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)

    def _begin_refresh(self) -> None:
        """Fetch the keys beside whoever asks, unless that was tried within the last minute."""
        if self._tried_at is None or self._clock() - self._tried_at >= MINUTE:
            self._tried_at = self._clock()
            self._refreshing = asyncio.create_task(self._refresh(), name="teams-keys")

    async def _refresh(self) -> None:
        """A failure keeps the old keys."""
        try:
            self._keys = await self._fetch()
            self._fetched_at = self._clock()
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, jwt.PyJWTError):
            return

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        async with aiohttp.ClientSession(timeout=self._timeout, raise_for_status=True) as session:
            async with session.get(self._openid_url) as response:
                document = await response.json(content_type=None)
            async with session.get(document["jwks_uri"]) as response:
                published = await response.json(content_type=None)
        endorsed = [key for key in published["keys"] if CHANNEL in key.get("endorsements", [])]
        return {key["kid"]: jwt.PyJWK(key, algorithm="RS256") for key in endorsed if key.get("kty") == "RSA"}


class TokenVerifier:
    """Reads the bearer token of a request for one bot."""

    def __init__(self, app_id: str, keys: SigningKeys) -> None:
        self._app_id = app_id
        self._keys = keys

    async def verify(self, authorization: str | None) -> Mapping[str, Any]:
        """Return the claims of an ``Authorization`` header, ``serviceurl`` among them.

        Raises:
            TokenRefused: missing, malformed, expired, for another bot, or signed by anybody else.
            KeysUnavailable: the keys cannot be fetched right now.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise TokenRefused("no bearer token")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") != "RS256":
                raise TokenRefused("not RS256")
            claims: Mapping[str, Any] = jwt.decode(
                token,
                await self._keys.find(str(header.get("kid"))),
                algorithms=["RS256"],
                audience=self._app_id,
                issuer=ISSUER,
                leeway=LEEWAY,
                options={"require": ["exp", "nbf", "iss", "aud", "serviceurl"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise TokenRefused(type(error).__name__) from error
        return claims
