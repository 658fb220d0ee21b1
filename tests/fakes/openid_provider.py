"""An OpenID Connect provider that follows the standard, unless a test makes it misbehave."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "footnote-client", "client-secret-CANARY"
PERSON = {"sub": "248289761001", "email": "Ada@example.com", "email_verified": True}


@dataclass
class ForgingProvider:
    """Fake provider, with the state that tests inspect and change."""

    issuer: str = ""
    # The user who is signed in without a prompt.
    person: dict[str, Any] = field(default_factory=lambda: dict(PERSON))
    # Overrides of the ID token's claims; None removes a claim.
    claims: dict[str, Any] = field(default_factory=dict)
    # Creates the ID token instead of the correct way.
    sign: Callable[[ForgingProvider, dict[str, Any]], str] | None = None
    # UserInfo response; None: there is no endpoint.
    info: dict[str, Any] | None = None
    # Overrides of the discovery document.
    metadata: dict[str, Any] = field(default_factory=dict)
    is_down: bool = False
    takes_codes_twice: bool = False
    # Code -> authorization request.
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    fetches: list[str] = field(default_factory=list)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first"}))

    def rotate(self, kid: str = "second") -> None:
        """Replace the signing key, publishing only the new one."""
        self.key = RSAKey.generate_key(2048, {"kid": kid})

    def token(self, request: dict[str, str]) -> str:
        """Return the ID token for an authorization request."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": request["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": request["nonce"],
            **self.person,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.sign:
            return self.sign(self, claims)
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    async def discover(self, request: web.Request) -> web.Response:
        """Return the discovery document."""
        self._note(request)
        known = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        if self.info is not None:
            known["userinfo_endpoint"] = f"{self.issuer}/userinfo"
        return web.json_response({**known, **self.metadata})

    async def publish_keys(self, request: web.Request) -> web.Response:
        """Return the public keys, one of an unknown type."""
        self._note(request)
        keys = KeySet([self.key, ECKey.generate_key("P-256", {"kid": "other"})]).as_dict(private=False)
        return web.json_response({"keys": [*keys["keys"], {"kty": "future", "kid": "x"}]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Authorize the signed-in user and redirect the browser back."""
        asked = dict(request.query)
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(12)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer}
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def exchange(self, request: web.Request) -> web.Response:
        """Exchange a code for an ID token, once, for its client with the right verifier."""
        self._note(request)
        said = await request.post()
        scheme, _, name = request.headers["Authorization"].partition(" ")
        client, _, secret = base64.b64decode(name).decode().partition(":")
        asked = self.codes.get(str(said["code"]))
        is_good = (
            asked is not None
            and (scheme, unquote(client), unquote(secret)) == ("Basic", CLIENT_ID, CLIENT_SECRET)
            and said["redirect_uri"] == asked["redirect_uri"]
            and create_s256_code_challenge(said["code_verifier"]) == asked["code_challenge"]
        )
        if asked is None or not is_good:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if not self.takes_codes_twice:
            del self.codes[str(said["code"])]
        token = {"access_token": "access", "token_type": "Bearer", "id_token": self.token(asked)}
        return web.json_response(token)

    async def tell(self, request: web.Request) -> web.Response:
        """Return the UserInfo response."""
        self._note(request)
        assert request.headers["Authorization"] == "Bearer access"
        return web.json_response(self.info)

    def _note(self, request: web.Request) -> None:
        self.fetches.append(request.path)
        if self.is_down:
            raise web.HTTPServiceUnavailable


def unsigned(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token with the algorithm "none"."""
    signed = jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, provider.key)
    return f"eyJhbGciOiJub25lIn0.{signed.split('.')[1]}."


def of_a_stranger(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token signed by another key under the provider's key id."""
    return jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, RSAKey.generate_key(2048))


def of_the_public_key(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token signed with the public key as HMAC secret (algorithm confusion)."""
    secret = OctKey.import_key(provider.key.as_pem(private=False).hex())
    return jwt.encode({"alg": "HS256", "kid": provider.key.kid}, claims, secret)


def of_a_made_up_key(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token with an unknown key id."""
    return jwt.encode({"alg": "RS256", "kid": secrets.token_hex(4)}, claims, RSAKey.generate_key(2048))


@asynccontextmanager
async def serving_provider() -> AsyncIterator[ForgingProvider]:
    """Yield a provider on loopback."""
    provider = ForgingProvider()
    app = web.Application()
    app.add_routes(
        [
            web.get("/.well-known/openid-configuration", provider.discover),
            web.get("/keys", provider.publish_keys),
            web.get("/authorize", provider.authorize),
            web.post("/token", provider.exchange),
            web.get("/userinfo", provider.tell),
        ]
    )
    async with TestServer(app) as server:
        provider.issuer = f"http://{server.host}:{server.port}"
        yield provider
