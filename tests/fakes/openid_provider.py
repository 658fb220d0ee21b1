"""An OpenID Connect provider that keeps to the standard, unless a test has it play tricks."""

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
    """What a test may look at and turn."""

    issuer: str = ""
    # Who signs in at once, without being asked anything.
    person: dict[str, Any] = field(default_factory=lambda: dict(PERSON))
    # What the ID token says otherwise; None: it does not say so.
    claims: dict[str, Any] = field(default_factory=dict)
    # What makes the ID token in place of the right way.
    sign: Callable[[ForgingProvider, dict[str, Any]], str] | None = None
    # What UserInfo says; None: there is none.
    info: dict[str, Any] | None = None
    # What discovery says otherwise.
    metadata: dict[str, Any] = field(default_factory=dict)
    is_down: bool = False
    takes_codes_twice: bool = False
    # Code -> the request that it was given for.
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    fetches: list[str] = field(default_factory=list)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first"}))

    def rotate(self, kid: str = "second") -> None:
        """Sign with another key, and publish no other."""
        self.key = RSAKey.generate_key(2048, {"kid": kid})

    def token(self, request: dict[str, str]) -> str:
        """Return the ID token of whom a code was given for."""
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
        """Return the provider's metadata."""
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
        """Return the public keys, one of them of a kind that nobody knows."""
        self._note(request)
        keys = KeySet([self.key, ECKey.generate_key("P-256", {"kid": "other"})]).as_dict(private=False)
        return web.json_response({"keys": [*keys["keys"], {"kty": "future", "kid": "x"}]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Somebody is signed in already: their browser is sent back."""
        asked = dict(request.query)
        assert asked["client_id"] == CLIENT_ID
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(12)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer}
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def exchange(self, request: web.Request) -> web.Response:
        """Return a code for an ID token, once, from the client that it was given to, with its verifier."""
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
        """UserInfo."""
        self._note(request)
        assert request.headers["Authorization"] == "Bearer access"
        return web.json_response(self.info)

    def _note(self, request: web.Request) -> None:
        self.fetches.append(request.path)
        if self.is_down:
            raise web.HTTPServiceUnavailable


def unsigned(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token of the algorithm "none"."""
    signed = jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, provider.key)
    return f"eyJhbGciOiJub25lIn0.{signed.split('.')[1]}."


def of_a_stranger(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token of another key under the id of the provider's."""
    return jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, RSAKey.generate_key(2048))


def of_the_public_key(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token whose secret is the public key, for those who let a token choose its algorithm."""
    secret = OctKey.import_key(provider.key.as_pem(private=False).hex())
    return jwt.encode({"alg": "HS256", "kid": provider.key.kid}, claims, secret)


def of_a_made_up_key(provider: ForgingProvider, claims: dict[str, Any]) -> str:
    """Return a token of a key id that was never published."""
    return jwt.encode({"alg": "RS256", "kid": secrets.token_hex(4)}, claims, RSAKey.generate_key(2048))


@asynccontextmanager
async def serving_provider() -> AsyncIterator[ForgingProvider]:
    """Yield a provider on loopback until the context ends."""
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
