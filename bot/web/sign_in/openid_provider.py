"""OpenID Connect client: authorization URL, code exchange and ID token verification.

OpenID Connect Core 1.0 (authorization code flow) with PKCE (RFC 7636); Discovery 1.0; RFC 9207.

    SignInError
    ├── ProviderUnavailable   the provider does not answer as it should; a retry may help
    └── SignInRefused         the response proves no identity
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet, import_key

from bot.loopback import is_loopback_host
from storage.clock import monotonic_seconds

# Accepted ID token signatures: asymmetric only, never HMAC with a shared secret or "none".
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
# Largest response accepted from a provider.
MAX_BYTES = 256 * 1024
TIMEOUT_SECONDS = 10.0
# TTL of the provider's metadata: an outage is noticed within it, and a flood causes no more fetches.
METADATA_SECONDS = 60.0
# TTL of its keys: a withdrawn key is accepted no longer than this.
KEYS_SECONDS = 3600.0
# Minimum interval between fetches for unknown key ids, so that made-up ids cause no fetches.
UNKNOWN_KEY_INTERVAL_SECONDS = 60.0
# Backoff after a failed fetch.
FAILURE_SECONDS = 5.0
# Accepted clock skew.
LEEWAY_SECONDS = 60

Claims = Mapping[str, Any]


class SignInError(Exception):
    """Sign-in failed."""


class ProviderUnavailable(SignInError):
    """The provider does not answer, or not as an OpenID Connect provider."""


class SignInRefused(SignInError):
    """The response of the browser or provider proves no identity."""


class OpenIdProvider:
    """Client of one OpenID Connect provider."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None,
        scopes: str,
        clock: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._scopes = scopes
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        self._metadata: Claims = {}
        self._metadata_until = 0.0
        self._failed_until = 0.0
        self._keys = KeySet([])
        self._keys_until = 0.0
        self._keys_pause_until = 0.0
        self._fetching = asyncio.Lock()

    async def check(self) -> None:
        """Check that the provider publishes its metadata and a key that we can read.

        Raises:
            ProviderUnavailable: it does not.
        """
        if not (await self._current_keys()).keys:
            raise ProviderUnavailable("no key that we can read")

    async def authorization_url(self, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        """Return the URL where a browser signs in, to come back with ``state``.

        Raises:
            ProviderUnavailable: its metadata cannot be fetched.
        """
        metadata = await self._current_metadata()
        url: str = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self._client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=self._scopes,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return url

    async def exchange_code(self, code: str, redirect_uri: str, nonce: str, verifier: str) -> Claims:
        """Exchange an authorization code for the person's verified claims.

        Raises:
            ProviderUnavailable: the provider does not answer.
            SignInRefused: the code is invalid, or the ID token belongs to another sign-in.
        """
        metadata = await self._current_metadata()
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form |= {"code_verifier": verifier}
        headers = self._credentials(metadata, form)
        granted = await self._fetch("POST", metadata["token_endpoint"], data=form, headers=headers)
        access = granted.get("access_token")
        claims = await self._verify(granted.get("id_token"), access, nonce)
        url = str(metadata.get("userinfo_endpoint"))
        if "email" in claims or not isinstance(access, str) or not self._is_secure_url(url):
            return claims
        # If it issues an access token, a provider may return a scope's claims from UserInfo only (Core 5.4).
        told = await self._fetch("GET", url, headers={"Authorization": f"Bearer {access}"})
        if told.get("sub") != claims["sub"]:
            raise SignInRefused("UserInfo of somebody else")
        # email_verified in the ID token says nothing about the address in UserInfo.
        return {**told, **{name: value for name, value in claims.items() if name != "email_verified"}}

    def _credentials(self, metadata: Claims, form: dict[str, str]) -> dict[str, str]:
        """Authenticate the client at the token endpoint: return headers, or add fields to ``form``.

        RFC 6749, 2.3.1.
        """
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self._client_secret is not None and "client_secret_basic" in methods:
            name = f"{quote(self._client_id, safe='')}:{quote(self._client_secret, safe='')}"
            return {"Authorization": f"Basic {base64.b64encode(name.encode()).decode()}"}
        form["client_id"] = self._client_id
        if self._client_secret is not None:
            form["client_secret"] = self._client_secret
        return {}

    async def _verify(self, token: object, access_token: object, nonce: str) -> Claims:
        """Return the verified claims of this sign-in's ID token.

        Raises:
            ProviderUnavailable: the keys cannot be fetched.
            SignInRefused: the token is missing or invalid.
        """
        try:
            if not isinstance(token, str):
                raise SignInRefused("no ID token")
            try:
                signed = jwt.decode(token, await self._current_keys(), algorithms=ALGORITHMS)
            except InvalidKeyIdError:  # the provider may have rotated its keys
                keys = await self._current_keys(is_unknown=True)
                signed = jwt.decode(token, keys, algorithms=ALGORITHMS)
            claims = CodeIDToken(
                signed.claims,
                signed.header,
                options={
                    "iss": {"essential": True, "value": self._issuer},
                    "aud": {"essential": True, "value": self._client_id},
                    "sub": {"essential": True},
                },
                params={"nonce": nonce, "client_id": self._client_id, "access_token": access_token},
            )
            claims.validate(leeway=LEEWAY_SECONDS)
            return dict(claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise SignInRefused(type(error).__name__) from error

    async def _current_metadata(self) -> Claims:
        async with self._fetching:
            if self._clock() < self._metadata_until:
                return self._metadata
            metadata = await self._fetch_with_backoff(get_well_known_url(self._issuer, external=True))
            needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            if metadata.get("issuer") != self._issuer or not all(
                map(self._is_secure_url, map(metadata.get, needed))
            ):
                raise ProviderUnavailable("not the metadata of this issuer")
            self._metadata, self._metadata_until = metadata, self._clock() + METADATA_SECONDS
            return metadata

    async def _current_keys(self, *, is_unknown: bool = False) -> KeySet:
        """Return the provider's keys; fetch them again, rate-limited, if a token's key is unknown."""
        metadata = await self._current_metadata()
        async with self._fetching:
            now = self._clock()
            is_due = now >= self._keys_until or (is_unknown and now >= self._keys_pause_until)
            if is_due:
                published = (await self._fetch_with_backoff(metadata["jwks_uri"])).get("keys")
                self._keys = _readable(published if isinstance(published, list) else [])
                self._keys_until = now + KEYS_SECONDS
                self._keys_pause_until = now + UNKNOWN_KEY_INTERVAL_SECONDS
            return self._keys

    async def _fetch_with_backoff(self, url: str) -> Claims:
        """Fetch with backoff: after a failure the provider is not asked for ``FAILURE_SECONDS``."""
        if self._clock() < self._failed_until:
            raise ProviderUnavailable("it did not answer a moment ago")
        try:
            return await self._fetch("GET", url)
        except SignInError as error:
            self._failed_until = self._clock() + FAILURE_SECONDS
            raise ProviderUnavailable(str(error)) from error

    async def _fetch(self, method: str, url: str, **request: Any) -> Claims:
        """Return a JSON object from the provider, without redirects and limited to ``MAX_BYTES``.

        Raises:
            ProviderUnavailable: there was no usable response.
            SignInRefused: the provider refused (4xx except 429).
        """
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout) as session,
                session.request(method, url, allow_redirects=False, **request) as response,
            ):
                body = bytearray()
                async for part in response.content.iter_chunked(MAX_BYTES):
                    body += part
                    if len(body) > MAX_BYTES:
                        raise ProviderUnavailable("too much")
                if 400 <= response.status < 500 and response.status != 429:
                    raise SignInRefused(f"status {response.status}")
                if response.status != 200:
                    raise ProviderUnavailable(f"status {response.status}")
            value = json.loads(body)
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError) as error:
            raise ProviderUnavailable(type(error).__name__) from error
        if not isinstance(value, dict):
            raise ProviderUnavailable("no JSON object")
        return value

    def _is_secure_url(self, url: object) -> bool:
        """True if secrets may be sent to a URL: https, or loopback if the issuer is loopback, too."""
        try:
            parts = urlsplit(url) if isinstance(url, str) else None
            is_here = parts is not None and is_loopback_host(parts.hostname)
        except ValueError:
            return False
        is_local_issuer = is_loopback_host(urlsplit(self._issuer).hostname)
        return parts is not None and (parts.scheme == "https" or (is_here and is_local_issuer))


def _readable(published: Collection[Any]) -> KeySet:
    """Return the published RSA and EC keys; others are skipped."""
    keys = []
    for one in published:
        try:
            key = import_key(one)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError):
            continue
        if key.key_type in ("RSA", "EC"):
            keys.append(key)
    return KeySet(keys)
