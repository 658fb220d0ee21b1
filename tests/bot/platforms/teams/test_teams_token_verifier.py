"""Authentication of Teams requests: tokens checked against an OpenID server, service URLs against a list."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import rsa
from harness.tables import for_each
from harness.waiting import PATIENCE, until_true

from bot.platforms.teams.adapter import PATH, TeamsAdapter
from bot.platforms.teams.connector import is_local, is_microsofts
from bot.platforms.teams.platform import open_teams
from bot.platforms.teams.token_verifier import ISSUER, KeysUnavailable, SigningKeys, TokenRefused
from bot.settings import BotSettings
from storage.errors import DatabaseUnavailable, SettingsError

APP_ID, TENANT = "11111111-1111-1111-1111-111111111111", "tenant-1"
SERVICE = "https://smba.trafficmanager.net/emea/"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)

ACTIVITY: dict[str, Any] = {
    "type": "message",
    "id": "a1",
    "channelId": "msteams",
    "text": "when do canary backups run?",
    "serviceUrl": SERVICE,
    "conversation": {"conversationType": "personal", "id": "a:1", "tenantId": TENANT},
    "recipient": {"id": "28:bot"},
}


@dataclass
class OpenId:
    """A fake of Microsoft's key server: its published keys, and a count of requests."""

    keys: dict[str, tuple[rsa.RSAPrivateKey, list[str]]] = field(
        default_factory=lambda: {"key-1": (KEY, ["msteams"]), "skype": (OTHER_KEY, ["skype"])}
    )
    asked: int = 0
    url: str = ""
    # While cleared, requests hang.
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Open the gate."""
        self.gate.set()

    async def document(self, _request: web.Request) -> web.Response:
        """Return the OpenID configuration."""
        self.asked += 1
        await self.gate.wait()
        return web.json_response({"issuer": ISSUER, "jwks_uri": f"{self.url}/keys"})

    async def published(self, _request: web.Request) -> web.Response:
        """Return the public keys with their endorsements."""
        algorithm = jwt.algorithms.RSAAlgorithm
        keys = [
            json.loads(algorithm.to_jwk(key.public_key())) | {"kid": kid, "endorsements": endorsed}
            for kid, (key, endorsed) in self.keys.items()
        ]
        return web.json_response({"keys": keys})


@pytest.fixture
async def openid() -> AsyncIterator[OpenId]:
    """Yield the key server on loopback."""
    openid, app = OpenId(), web.Application()
    app.router.add_get("/openid", openid.document)
    app.router.add_get("/keys", openid.published)
    async with TestServer(app) as server:
        openid.url = str(server.make_url("")).rstrip("/")
        yield openid


def token(key: Any = KEY, kid: str = "key-1", algorithm: str = "RS256", **claims: Any) -> str:
    """Return a token as the Bot Framework issues it, with claims changed; None removes one."""
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": APP_ID, "nbf": now - 60, "exp": now + 86_400, "serviceurl": SERVICE}
    kept = {name: value for name, value in (usual | claims).items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid})


def settings(**others: Any) -> BotSettings:
    """Return settings of a single-tenant bot."""
    usual = {"teams_app_id": APP_ID, "teams_app_password": "s3cret", "teams_tenant_id": TENANT}
    return BotSettings(**(usual | others))


@dataclass(frozen=True)
class Door:
    """An adapter on a real HTTP server."""

    url: str
    session: aiohttp.ClientSession
    inbox: Any

    async def post(
        self, body: bytes | dict[str, Any], authorization: str | None, kind: str = "application/json"
    ) -> int:
        """Post a request with this ``Authorization`` and return the status."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": kind} | ({"Authorization": authorization} if authorization else {})
        async with self.session.post(self.url, data=io.BytesIO(data), headers=headers) as response:
            return response.status


def adapter(inbox: Any, keys: SigningKeys, **others: Any) -> TeamsAdapter:
    """Return an adapter that gets its keys from the fake key server."""
    return TeamsAdapter(settings(**others), inbox.service, keys=keys)


@pytest.fixture
async def door(openid: OpenId, new_inbox: Callable[[], Any]) -> AsyncIterator[Door]:
    """Yield the adapter of a configured bot with keys from the fake key server."""
    inbox = new_inbox()
    teams = adapter(inbox, SigningKeys(f"{openid.url}/openid"))
    app = web.Application()
    teams.add_routes(app)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TestServer(app))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Door(str(server.make_url(PATH)), session, inbox)


async def test_a_message_with_a_valid_token_is_stored_before_200(door: Door) -> None:
    """Teams gets 200 only after the commit."""
    door.inbox.gate = asyncio.Event()
    sending = asyncio.create_task(door.post(ACTIVITY, f"Bearer {token()}"))
    await until_true(lambda: door.inbox.arrivals)
    assert not sending.done()
    door.inbox.gate.set()
    assert await sending == 200
    (message,) = door.inbox.kept.values()
    assert message.key.installation == TENANT


def thumb(**conversation: Any) -> dict[str, Any]:
    """Return feedback whose envelope names the tenant only in its conversation."""
    named = ACTIVITY["conversation"] | conversation
    said = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": ""}}
    invoke = {"type": "invoke", "name": "message/submitAction", "replyToId": "17", "value": said}
    return ACTIVITY | invoke | {"from": {"id": "29:ann"}, "channelData": {}, "conversation": named}


async def test_feedback_of_another_tenant_or_without_token_is_refused(door: Door) -> None:
    """The tenant is read from the conversation if ``channelData`` names none."""
    assert await door.post(thumb(), f"Bearer {token()}") == 200
    assert await door.post(thumb(tenantId="tenant-2"), f"Bearer {token()}") == 403
    assert await door.post(thumb(tenantId=None), f"Bearer {token()}") == 403
    assert await door.post(thumb(), None) == 401
    assert [person for _, person, _, _ in door.inbox.feedback.said] == [(TENANT, "29:ann")]


def hmac_of_the_public_key() -> str:
    """Return a token signed by HMAC, for libraries that would take a public key for a secret."""
    return token(key="x" * 64, algorithm="HS256")


REFUSED: dict[str, tuple[str | None, int]] = {
    "no header": (None, 401),
    "another scheme": ("Basic dXNlcjpwYXNz", 401),
    "no token": ("Bearer ", 401),
    "garbage": ("Bearer garbage", 401),
    "garbage in three parts": ("Bearer a.b.c", 401),
    "not ASCII": ("Bearer \u00fcml\u00e4ut", 401),
    "expired": (f"Bearer {token(exp=int(time.time()) - 301)}", 401),
    "not yet valid": (f"Bearer {token(nbf=int(time.time()) + 86_400)}", 401),
    "without an end": (f"Bearer {token(exp=None)}", 401),
    "for another bot": (f"Bearer {token(aud='another')}", 401),
    "by another issuer": (f"Bearer {token(iss='https://sts.windows.net/x/')}", 401),
    "by another key": (f"Bearer {token(key=OTHER_KEY)}", 401),
    "by an unknown key": (f"Bearer {token(kid='nobody')}", 401),
    "by a key of another channel": (f"Bearer {token(key=OTHER_KEY, kid='skype')}", 401),
    "unsigned": (f"Bearer {token(key=None, algorithm='none')}", 401),
    "by HMAC": (f"Bearer {hmac_of_the_public_key()}", 401),
    "without a service URL": (f"Bearer {token(serviceurl=None)}", 401),
    "for another service URL": (f"Bearer {token(serviceurl='https://smba.trafficmanager.net/amer/')}", 403),
}


@pytest.mark.parametrize(("authorization", "status"), REFUSED.values(), ids=REFUSED)
async def test_every_other_token_is_refused(door: Door, authorization: str | None, status: int) -> None:
    """The status is 401 or 403, no error of ours, and nothing is stored."""
    assert await door.post(ACTIVITY, authorization) == status
    assert door.inbox.arrivals == 0


@pytest.mark.parametrize(
    "change",
    [
        {"serviceUrl": "https://evil.example/"},
        {"serviceUrl": None},
        {"channelId": "webchat"},
        {"conversation": ACTIVITY["conversation"] | {"tenantId": "tenant-2"}},
        {"channelData": {"tenant": {"id": "tenant-2"}}},
    ],
    ids=str,
)
async def test_a_good_token_with_a_foreign_activity_is_forbidden(door: Door, change: dict[str, Any]) -> None:
    """Covers another reply URL, channel or tenant than those of the token and the settings."""
    url = change.get("serviceUrl") or SERVICE
    assert await door.post(ACTIVITY | change, f"Bearer {token(serviceurl=url)}") == 403


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b" " * (1 << 19), "application/json", 413),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_an_unreadable_body_is_refused(door: Door, body: bytes, kind: str, status: int) -> None:
    """A bad request with a valid token; without one the body is not read."""
    assert await door.post(body, f"Bearer {token()}", kind) == status
    assert await door.post(body, None, kind) == 401


@pytest.mark.parametrize(
    "strange",
    [{"conversation": []}, {"entities": [7, None]}, {"channelData": "x"}, {"recipient": 1}, {"text": 7}],
    ids=str,
)
async def test_a_malformed_activity_is_never_a_server_error(door: Door, strange: dict[str, Any]) -> None:
    """Malformed fields never lead to status 500."""
    assert await door.post(ACTIVITY | strange, f"Bearer {token()}") in (200, 403)


async def test_teams_retries_a_message_that_could_not_be_stored(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """With the database down the response is 503; no text of the question is logged."""
    door.inbox.failure = DatabaseUnavailable("disk full while keeping canary backups")
    assert await door.post(ACTIVITY, f"Bearer {token()}") == 503
    assert "canary" not in caplog.text


async def test_an_unknown_key_id_does_not_delay_valid_messages(openid: OpenId) -> None:
    """Covers the fetch for an unknown key and the daily refresh of a known one."""
    now = [0.0]
    keys = SigningKeys(f"{openid.url}/openid", clock=lambda: now[0])
    known = await keys.find("key-1")
    openid.gate.clear()
    for later in (120.0, 2 * 24 * 3600.0):
        now[0] = later
        made_up = asyncio.create_task(keys.find("nobody"))
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            assert await keys.find("key-1") == known
        assert not made_up.done()
        made_up.cancel()
        await asyncio.wait([made_up])
    openid.gate.set()


async def test_a_rotated_key_is_fetched_at_most_once_a_minute(openid: OpenId) -> None:
    """A new key id triggers a fetch, but at most once a minute."""
    now = [0.0]
    keys = SigningKeys(f"{openid.url}/openid", clock=lambda: now[0])
    await keys.find("key-1")
    openid.keys["key-2"] = (OTHER_KEY, ["msteams"])
    now[0] = 61.0
    assert await keys.find("key-2")
    for number in range(50):
        with pytest.raises(TokenRefused):
            await keys.find(f"made-up-{number}")
    assert openid.asked == 2


async def test_old_keys_serve_while_the_key_server_is_down(openid: OpenId) -> None:
    """After a day without a key server the cached keys still count."""
    now = [0.0]
    keys = SigningKeys(f"{openid.url}/openid", clock=lambda: now[0])
    await keys.find("key-1")
    openid.url = "http://127.0.0.1:9"
    now[0] = 90_000.0
    assert await keys.find("key-1")


async def test_readiness_requires_microsofts_keys(
    openid: OpenId, new_inbox: Callable[[], Any], development_door: Callable[[Any], TeamsAdapter]
) -> None:
    """Keys are fetched without any message, once a minute; stale keys suffice; development needs none."""
    now, url = [0.0], openid.url
    teams = adapter(new_inbox(), SigningKeys(f"{url}/openid", clock=lambda: now[0]))
    openid.url = "http://127.0.0.1:9"
    assert [await teams.is_ready() for _ in range(3)] == [False] * 3
    assert openid.asked == 1
    openid.url, now[0] = url, 61.0
    assert await teams.is_ready()
    openid.url, now[0] = "http://127.0.0.1:9", 90_000.0
    assert await teams.is_ready()
    assert await development_door(new_inbox()).is_ready()


async def test_a_slow_key_server_does_not_block_the_event_loop(openid: OpenId) -> None:
    """Fetching has a timeout and does not block the event loop; without keys the response is 503."""
    openid.gate.clear()
    keys, ticks = SigningKeys(f"{openid.url}/openid", timeout=0.5), 0
    finding = asyncio.create_task(keys.find("key-1"))
    while not finding.done():
        await asyncio.sleep(0.01)
        ticks += 1
    with pytest.raises(KeysUnavailable):
        await finding
    assert ticks > 2  # a blocked loop would tick once
    openid.gate.set()


@for_each(
    ("url", "trusted"),
    [
        ("https://smba.trafficmanager.net/emea/", True),
        ("https://smba.infra.gcc.teams.microsoft.com/gcc", True),
        ("https://europe.botframework.com", True),
        ("https://smba.trafficmanager.net:443/x", True),
        ("http://smba.trafficmanager.net/", False),
        ("https://smba.trafficmanager.net.evil.example/", False),
        ("https://evilsmba.trafficmanager.net/", False),
        ("https://evil-botframework.com/", False),
        ("https://user@smba.trafficmanager.net/", False),
        ("https://smba.trafficmanager.net@evil.example/", False),
        ("https://evil.example/\\@botframework.com", False),
        ("https://smba.trafficmanager.net:8443/", False),
        ("https://169.254.169.254/", False),
        ("https://127.0.0.1/", False),
        ("https://localhost/", False),
        ("https://[::1]/", False),
        ("https://botframework.com:port/", False),
        ("", False),
    ],
)
def test_only_microsofts_connectors_get_replies(url: str, trusted: bool) -> None:
    """Look-alike hosts, internal addresses and URLs with credentials are refused."""
    assert is_microsofts(url) is trusted


@for_each(
    ("url", "trusted"),
    [
        ("http://localhost:56150/_connector", True),
        ("http://127.0.0.1:56150/_connector", True),
        ("http://[::1]:56150/", True),
        ("http://localhost.evil.example/", False),
        ("http://127.0.0.1.evil.example/", False),
        ("http://10.0.0.1/", False),
        (SERVICE, False),
    ],
)
def test_development_replies_to_this_machine_only(url: str, trusted: bool) -> None:
    """Development mode sends nothing to other machines."""
    assert is_local(url) is trusted


async def test_development_listens_to_this_machine_only(
    development_door: Callable[[Any], TeamsAdapter], new_inbox: Callable[[], Any]
) -> None:
    """Requests under a foreign host name, as from a web page, and foreign reply URLs are refused."""
    app = web.Application()
    development_door(new_inbox()).add_routes(app)
    local = ACTIVITY | {"serviceUrl": "http://localhost:1/"}
    async with TestServer(app) as server, aiohttp.ClientSession() as session:

        async def post(activity: dict[str, Any], host: str) -> int:
            url = server.make_url(PATH)
            async with session.post(url, json=activity, headers={"Host": host}) as response:
                return response.status

        assert await post(local, "localhost:8765") == 200
        assert await post(local, "evil.example") == 403
        assert await post(ACTIVITY, "localhost:8765") == 403


@pytest.mark.parametrize(
    "half",
    [
        {"teams_app_id": APP_ID},
        {"teams_app_password": "s3cret"},
        {"teams_app_id": APP_ID, "teams_app_password": "s3cret"},
        {"teams_development": True, "host": "0.0.0.0"},
        {"teams_development": True, "teams_app_id": APP_ID, "teams_app_password": "s3cret"},
    ],
    ids=str,
)
def test_an_incomplete_configuration_does_not_start(
    half: dict[str, Any], new_inbox: Callable[[], Any]
) -> None:
    """A missing variable raises SettingsError instead of disabling authentication."""
    with pytest.raises(SettingsError):
        opened(BotSettings(**half), new_inbox())


def test_without_any_configuration_there_is_no_teams(new_inbox: Callable[[], Any]) -> None:
    """Without any Teams settings no adapter is opened."""
    assert opened(BotSettings(), new_inbox()) is None


def opened(settings: BotSettings, inbox: Any) -> TeamsAdapter | None:
    """Return the adapter that the program opens with these settings."""
    return open_teams(settings, inbox.service)
