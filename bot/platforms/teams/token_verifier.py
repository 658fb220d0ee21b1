"""Verifies the Bot Framework's JWTs with the signing keys (JWKS) endorsed for Teams.

Keys are cached for a day and fetched again for an unknown key id, but at most once a minute, so that invented
key ids cause no requests and no waiting for others. Each fetch has a timeout.
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
KEY_TTL_SECONDS = 24 * 3600.0
MIN_REFRESH_SECONDS = 60.0
# Clock skew in seconds that Microsoft allows.
CLOCK_SKEW_SECONDS = 300


class TokenRefused(Exception):
    """The token is missing or invalid: 401."""


class KeysUnavailable(Exception):
    """Microsoft's signing keys cannot be fetched: 503, so that the message is redelivered."""


class SigningKeys:
    """Cache of the Bot Framework's public keys that are endorsed for Teams, by key id."""

    def __init__(
        self, openid_url: str = OPENID, timeout: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._openid_url = openid_url
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._tried_at: float | None = None
        self._fetched_at = -KEY_TTL_SECONDS
        self._refreshing: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> jwt.PyJWK:
        """Return a key by its id; an unknown id waits for a fetch, stale keys refresh in the background.

        Raises:
            TokenRefused: there is no such key, or it is not endorsed for Teams.
            KeysUnavailable: no keys are cached and none can be fetched.
        """
        if key_id not in self._keys:
            await self._wait_for_refresh()
        elif self._clock() - self._fetched_at > KEY_TTL_SECONDS:
            self._begin_refresh()
        if not self._keys:
            raise KeysUnavailable
        if key_id not in self._keys:
            raise TokenRefused("unknown key")
        return self._keys[key_id]

    async def has_keys(self) -> bool:
        """True if keys are cached or can be fetched now: without them no message is accepted."""
        if not self._keys:
            await self._wait_for_refresh()
        return bool(self._keys)

    async def _wait_for_refresh(self) -> None:
        """Wait for the fetch in progress, or start one."""
        self._begin_refresh()
        # Shielded, because other callers may wait for the same task.
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)

    def _begin_refresh(self) -> None:
        """Start a fetch in the background, unless one was started within the last minute."""
        if self._tried_at is None or self._clock() - self._tried_at >= MIN_REFRESH_SECONDS:
            self._tried_at = self._clock()
            self._refreshing = asyncio.create_task(self._refresh(), name="teams-keys")

    async def _refresh(self) -> None:
        """Replace the cached keys; on failure the old ones stay."""
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
    """Verifies bearer tokens issued for one bot."""

    def __init__(self, app_id: str, keys: SigningKeys) -> None:
        self._app_id = app_id
        self._keys = keys

    async def verify(self, authorization: str | None) -> Mapping[str, Any]:
        """Return the verified claims of an ``Authorization`` header, including ``serviceurl``.

        Raises:
            TokenRefused: missing, malformed, expired, for another bot, or with another signature.
            KeysUnavailable: the signing keys cannot be fetched.
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
                leeway=CLOCK_SKEW_SECONDS,
                options={"require": ["exp", "nbf", "iss", "aud", "serviceurl"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise TokenRefused(type(error).__name__) from error
        return claims
