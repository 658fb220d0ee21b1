"""Console sign-in over OIDC under the public URL: roles, sessions, and forged responses."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient
from fakes.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    ForgingProvider,
    of_a_made_up_key,
    of_a_stranger,
    of_the_public_key,
    serving_provider,
    unsigned,
)
from fakes.web_house import SIGNED_IN, House, Visit, make_pdf
from pydantic import SecretStr

from bot.sign_in_settings import SignInSettings
from bot.web.sign_in.sign_in import PendingSignIn
from storage.chat.traces import QuestionRecords
from storage.clock import utc_now
from storage.erasure.targets import person_target, words_of
from storage.sql.audit import AuditEntry, AuditLog
from storage.sql.tables import FeedbackRow

PUBLIC = "https://footnote.example"
ADA = "ada@example.com"
CALLBACK = "/console/sign-in/callback"
SESSION, BEGUN = "__Host-footnote_session", "__Host-footnote_sign_in"
PAGE = {"Accept": "text/html", "Host": "footnote.example", "Sec-Fetch-Mode": "navigate"}
SCRIPT = {
    "Host": "footnote.example",
    "Origin": PUBLIC,
    "Sec-Fetch-Site": "same-origin",
    "X-Footnote-Console": "1",
}
FORM = {"Host": "footnote.example", "Origin": "null", "Sec-Fetch-Site": "same-origin"}
SignInChange = dict[str, Any]


@dataclass
class Browser:
    """A browser at the public URL: keeps cookies and follows the redirects of the provider."""

    client: TestClient
    provider: ForgingProvider
    cookies: dict[str, str] = field(default_factory=dict)

    async def send(
        self, method: str, path: str, headers: dict[str, str] | None = None, **said: Any
    ) -> ClientResponse:
        """Send a request with the cookies, without following redirects."""
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = (headers or PAGE) | ({"Cookie": kept} if kept else {})
        response = await self.client.request(method, path, headers=sent, allow_redirects=False, **said)
        for name, morsel in response.cookies.items():
            self.cookies[name] = morsel.value
            if morsel["max-age"] == "0":
                del self.cookies[name]
        return response

    async def begin(self, path: str = "/console/documents") -> str:
        """Request a page and sign in at the provider; return the callback URL."""
        response = await self.send("GET", path)
        assert response.status == 302, await response.text()
        async with (
            aiohttp.ClientSession() as outside,
            outside.get(response.headers["Location"], allow_redirects=False) as answered,
        ):
            back = answered.headers["Location"]
        assert back.startswith(PUBLIC)
        return back.removeprefix(PUBLIC)

    async def sign_in(self, path: str = "/console/documents") -> ClientResponse:
        """Return the response to a complete sign-in."""
        return await self.send("GET", await self.begin(path))


Open = Callable[..., Awaitable[Browser]]


@pytest.fixture
async def provider() -> AsyncIterator[ForgingProvider]:
    """Yield a provider on this machine that signs in Ada."""
    async with serving_provider() as started:
        yield started


@pytest.fixture
def open_browser(visit: Visit, house: House, provider: ForgingProvider) -> Open:
    """Return a function that starts a bot with Ada as admin and returns a browser; keywords are settings."""
    house.public_url = PUBLIC

    async def start(*, console: bool | None = None, **settings: Any) -> Browser:
        chosen = {"oidc_admins": ADA, "oidc_client_secret": SecretStr(CLIENT_SECRET), **settings}
        sign_in = SignInSettings(oidc_issuer=provider.issuer, oidc_client_id=CLIENT_ID, **chosen)
        return Browser(await visit(is_signed_in=False, sign_in=sign_in, console=console), provider)

    return start


async def audited(house: House) -> list[AuditEntry]:
    """Return the audit entries."""
    return await AuditLog(house.database).latest()


async def test_sign_in_returns_to_the_requested_page(open_browser: Open, house: House) -> None:
    """The cookies are HttpOnly, Secure and SameSite; the audit log names the person."""
    browser = await open_browser()
    asked = await browser.send("GET", "/console/documents?q=plan")
    begun = asked.headers["Set-Cookie"]
    assert (asked.status, asked.headers["Cache-Control"]) == (302, "private, no-store")
    assert begun.startswith(f"{BEGUN}=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= set(begun.split("; "))
    landed = await browser.sign_in("/console/documents?q=plan")
    assert landed.status == 200
    assert f'content="0; url={PUBLIC}/console/documents?q=plan"' in await landed.text()
    kept = landed.headers["Set-Cookie"]
    assert kept.startswith(f"{SESSION}=")
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/", "Max-Age=28800"} <= set(kept.split("; "))
    page = await browser.send("GET", "/console/documents")
    assert page.status == 200
    assert ADA in await page.text()
    (entry,) = await audited(house)
    assert (entry.action, entry.subject, entry.is_done) == ("sign in", "admin", True)
    assert entry.actor == f"oidc:{urlsplit(browser.provider.issuer).netloc}:{ADA}"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "another-client"]},
        {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "never"},
        {"iat": 4_000_000_000, "exp": 4_000_000_100},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"at_hash": "of-another-token"},
    ],
    ids=str,
)
async def test_a_token_with_wrong_claims_is_refused(
    open_browser: Open, provider: ForgingProvider, claims: dict[str, Any]
) -> None:
    """Issuer, audience, nonce, times, subject and access-token hash must match this sign-in."""
    provider.claims = claims
    browser = await open_browser()
    refused = await browser.sign_in()
    assert (refused.status, SESSION in browser.cookies) == (400, False)
    assert (await browser.send("GET", "/console/documents")).status == 302


@pytest.mark.parametrize("sign", [unsigned, of_a_stranger, of_the_public_key, of_a_made_up_key])
async def test_a_token_not_signed_by_the_provider_is_refused(
    open_browser: Open, provider: ForgingProvider, sign: Any
) -> None:
    """A foreign key, an invented key id, the public key as an HMAC secret, and no signature are refused."""
    provider.sign = sign
    browser = await open_browser()
    assert ((await browser.sign_in()).status, SESSION in browser.cookies) == (400, False)


async def test_invented_key_ids_cause_no_fetch(open_browser: Open, provider: ForgingProvider) -> None:
    """A provider's new key is fetched at once; after that, unknown key ids wait for a minute."""
    browser = await open_browser()
    assert (await browser.sign_in()).status == 200
    assert provider.fetches.count("/keys") == 1
    provider.sign = of_a_made_up_key
    for _ in range(3):
        again = Browser(browser.client, provider)
        assert (await again.sign_in()).status == 400
    assert provider.fetches.count("/keys") == 1
    assert provider.fetches.count("/.well-known/openid-configuration") == 1


async def test_a_provider_may_change_its_keys(open_browser: Open, provider: ForgingProvider) -> None:
    """Shows that a token with a new key is accepted as soon as the provider publishes the key."""
    provider.sign = of_a_made_up_key
    browser = await open_browser()
    assert (await browser.sign_in()).status == 400  # first fetch of the keys
    provider.sign = None
    assert (await browser.sign_in()).status == 200


@pytest.mark.parametrize(
    "person",
    [{"email_verified": False}, {"email_verified": "true"}, {"email": "ada@example.com.evil.example"}],
)
async def test_an_unverified_address_gives_no_role(
    open_browser: Open, provider: ForgingProvider, house: House, person: dict[str, Any]
) -> None:
    """The page says whom to ask and names nothing; there is no session, and an audit entry."""
    provider.person |= person
    browser = await open_browser()
    refused = await browser.sign_in()
    text = await refused.text()
    assert (refused.status, SESSION in browser.cookies) == (403, False)
    assert "ask the people who run Footnote" in text
    assert "example.com" not in text
    (entry,) = await audited(house)
    assert (entry.action, entry.is_done) == ("sign in", False)


async def test_a_subject_like_an_address_is_marked_in_the_audit_log(
    open_browser: Open, provider: ForgingProvider, house: House
) -> None:
    """Some providers let people choose their subject id, which could be an admin's address."""
    provider.person = {"sub": ADA, "groups": ["staff"]}
    browser = await open_browser(oidc_readers="group:staff")
    assert (await browser.sign_in()).status == 200
    (entry,) = await audited(house)
    assert entry.actor == f"oidc:{urlsplit(provider.issuer).netloc}:sub:{ADA}"


async def test_an_address_is_verified_only_within_its_own_document(
    open_browser: Open, provider: ForgingProvider
) -> None:
    """UserInfo's address is not verified by an ID token without one, only by UserInfo itself."""
    provider.person = {"sub": "1", "email_verified": True}
    provider.info = {"sub": "1", "email": ADA}
    browser = await open_browser()
    assert (await browser.sign_in()).status == 403
    provider.person["email_verified"] = False
    provider.info["email_verified"] = True
    assert (await Browser(browser.client, provider).sign_in()).status == 200


async def test_groups_from_userinfo_give_roles(open_browser: Open, provider: ForgingProvider) -> None:
    """Groups may be in the token or in UserInfo; UserInfo of another subject is ignored."""
    provider.person = {"sub": "1", "roles": ["visitors", "Footnote Readers"]}
    settings = {
        "oidc_admins": "group:admins",
        "oidc_readers": "group:Footnote Readers",
        "oidc_groups_claim": "roles",
    }
    browser = await open_browser(**settings)
    assert (await browser.sign_in()).status == 200
    assert (await browser.send("POST", "/console/uploads", FORM)).status == 403
    provider.person = {"sub": "1"}
    provider.info = {"sub": "1", "roles": "admins"}
    provider.metadata = {"userinfo_endpoint": f"{provider.issuer}/userinfo"}
    other = await open_browser(**settings)
    assert (await other.sign_in()).status == 200
    assert (await other.send("POST", "/console/uploads", FORM)).status == 400  # an admin without a file
    provider.info = {"sub": "2", "roles": "admins"}
    assert (await Browser(other.client, provider).sign_in()).status == 400


async def test_a_sign_in_cannot_be_completed_by_another_browser(
    open_browser: Open, provider: ForgingProvider
) -> None:
    """A callback URL that a victim is lured to does nothing, and its code is not even exchanged."""
    attacker = await open_browser()
    back = await attacker.begin()
    victim = Browser(attacker.client, provider)
    assert (await victim.send("GET", back)).status == 400
    await victim.begin()
    assert (await victim.send("GET", back)).status == 400
    assert "/token" not in provider.fetches
    assert SESSION not in victim.cookies
    assert (await attacker.send("GET", back)).status == 200


async def test_a_callback_is_valid_once_and_for_a_limited_time(
    open_browser: Open, provider: ForgingProvider
) -> None:
    """A code is exchanged once; an altered or old state, another issuer or an error is refused."""
    browser = await open_browser()
    back = await browser.begin()
    assert (await browser.send("GET", back)).status == 200
    assert (await browser.send("GET", back)).status == 400
    browser = Browser(browser.client, provider)
    query = {name: values[0] for name, values in parse_qs(urlsplit(await browser.begin()).query).items()}
    body, _, mac = query["state"].partition(".")
    said = json.loads(base64.urlsafe_b64decode(body + "==="))
    assert said[2] <= time.time() + 600
    for changed in ([said[0], "@evil.example/", said[2]], [said[0], said[1], said[2] + 9999], 7, []):
        forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).decode().rstrip("=")
        answered = await browser.send("GET", CALLBACK, params=query | {"state": f"{forged}.{mac}"})
        assert (answered.status, "evil" in await answered.text()) == (400, False)
    for wrong in ({"state": ""}, {"iss": "https://evil.example"}, {"state": "\u00fc"}):
        assert (await browser.send("GET", CALLBACK, params=query | wrong)).status == 400
    del query["code"]
    answered = await browser.send("GET", CALLBACK, params=query | {"error": "<script>access_denied"})
    assert (answered.status, "script" in await answered.text()) == (400, False)


async def test_many_callbacks_cause_few_provider_requests(
    open_browser: Open, provider: ForgingProvider
) -> None:
    """A hundred callbacks with one state exchange one code; of two hundred states a bounded number waits."""
    browser = await open_browser()
    back = await browser.begin()
    answers = await asyncio.gather(*(browser.send("GET", back) for _ in range(100)))
    assert Counter(one.status for one in answers) == {200: 1, 400: 99}
    assert provider.fetches.count("/token") == 1
    key, until = secrets.token_urlsafe(32), int(time.time()) + 60
    browser = Browser(browser.client, provider, {BEGUN: key})
    states = [PendingSignIn(key, secrets.token_hex(16), "/", until).state for _ in range(200)]
    sent = [browser.send("GET", CALLBACK, params={"code": "x", "state": state}) for state in states]
    answers = await asyncio.gather(*sent)
    refused = sum(one.status == 503 for one in answers)
    assert refused > 100
    assert provider.fetches.count("/token") == 1 + 200 - refused
    turned_away = next(state for state, one in zip(states, answers, strict=True) if one.status == 503)
    back = await browser.send("GET", CALLBACK, params={"code": "x", "state": turned_away})
    assert provider.fetches.count("/token") == 2 + 200 - refused, back.status


async def test_a_state_signed_by_the_browser_is_refused(
    open_browser: Open, provider: ForgingProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """A self-chosen key can sign any state: other types, no expiry, or an expiry beyond ours is refused."""
    key, number, until = secrets.token_urlsafe(32), secrets.token_hex(16), int(time.time()) + 60
    browser = Browser((await open_browser()).client, provider, {BEGUN: key})
    for made_up in (
        (number, "/", until + 3600),
        (number, "/", float("inf")),
        (number, "/", "soon"),
        (number, "/", None),
        (number, ["/"], until),
        (number, "/\ud800", until),
        (number, "/" + "x" * 2000, until),
        (7, "/", until),
        (None, "/", until),
        ("\ud800", "/", until),
        ("x" * 2000, "/", until),
    ):
        state = PendingSignIn(key, *made_up).state  # type: ignore[arg-type]
        answered = await browser.send("GET", CALLBACK, params={"code": "x", "state": state})
        assert answered.status == 400, made_up
    assert not provider.fetches
    assert not caplog.records


@pytest.mark.parametrize(
    "path", ["/console/documents?next=//evil.example", "/?secret=CANARY&to=https://evil.example"]
)
async def test_sign_in_never_redirects_to_another_site(open_browser: Open, path: str) -> None:
    """The redirect after a sign-in stays in this console; the provider gets no secret."""
    browser = await open_browser()
    asked = await browser.send("GET", path)
    assert "CANARY" not in asked.headers["Location"]
    state = parse_qs(urlsplit(asked.headers["Location"]).query)["state"][0]
    assert b"CANARY" not in base64.urlsafe_b64decode(state.partition(".")[0] + "===")
    landed = await (await browser.sign_in(path)).text()
    assert f'content="0; url={PUBLIC}/' in landed


async def test_a_planted_session_cookie_is_not_adopted(open_browser: Open, provider: ForgingProvider) -> None:
    """A sign-in replaces any existing session cookie, and an altered cookie is invalid."""
    browser = await open_browser()
    browser.cookies[SESSION] = "planted"
    assert (await browser.sign_in()).status == 200
    first = browser.cookies[SESSION]
    assert (await browser.send("GET", "/console/documents")).status == 200
    await Browser(browser.client, provider).sign_in()
    body, _, mac = first.partition(".")
    raised = base64.urlsafe_b64decode(body + "===").replace(b'"groups":[]', b'"groups":["x"]')
    forged = base64.urlsafe_b64encode(raised).decode().rstrip("=")
    for cookie in (f"{forged}.{mac}", body, f"{body}.", f".{mac}", "x" * 5000, "\u00fc.\u00fc"):
        browser.cookies[SESSION] = cookie
        assert (await browser.send("GET", "/console/documents")).status == 302, cookie


async def test_a_session_is_valid_on_every_bot_until_it_expires(
    open_browser: Open, house: House, provider: ForgingProvider
) -> None:
    """Shows a lifetime of eight hours, and that a withdrawn role ends it sooner."""
    browser = await open_browser()
    await browser.sign_in()
    another = await open_browser(oidc_readers=ADA, oidc_admins="")
    another.cookies = dict(browser.cookies)
    assert (await another.send("GET", "/console/documents")).status == 200
    assert (await another.send("POST", "/console/uploads", FORM)).status == 403
    without = await open_browser(oidc_admins="bob@example.com")
    without.cookies = dict(browser.cookies)
    assert (await without.send("GET", "/console/documents")).status == 302
    house.now += timedelta(hours=8)
    later = await open_browser()
    later.cookies = dict(browser.cookies)
    assert (await later.send("GET", "/console/documents")).status == 302


async def test_sign_out_ends_all_copies_of_a_session(open_browser: Open, house: House) -> None:
    """The old cookie is invalid on every bot; other sites cannot sign a person out."""
    browser = await open_browser()
    await browser.sign_in()
    copy = dict(browser.cookies)
    assert "Sign out" in await (await browser.send("GET", "/console/sign-out")).text()
    for foreign in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert (await browser.send("POST", "/console/sign-out", FORM | foreign)).status == 403
    assert (await browser.send("POST", "/console/sign-out", FORM)).status == 200
    assert SESSION not in browser.cookies
    another = await open_browser()
    another.cookies = copy
    assert (await another.send("GET", "/console/documents")).status == 302
    assert [one.action for one in await audited(house)] == ["sign in", "sign out"]


async def test_a_reader_may_read_and_ask_but_change_nothing(
    open_browser: Open, house: House, provider: ForgingProvider
) -> None:
    """All POST requests except questions are refused; questions carry their name, without admin rights."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "plan.pdf", make_pdf([["Plan"]]), "Plan")
    browser = await open_browser(oidc_admins="", oidc_readers=f" Bob@example.com, {ADA.upper()}")
    await browser.sign_in()
    for path in (
        "/",
        "/console/channels",
        f"/console/search/{channel.id}",
        "/console/quality.json",
        "/console/usage",
        f"/console/conversations/{channel.id}",
    ):
        assert (await browser.send("GET", path)).status == 200
    assert (await browser.send("GET", "/console/settings")).status == 403
    listed = await (await browser.send("GET", "/console/documents")).text()
    assert "plan.pdf" in listed
    assert "Upload" not in listed
    document = f"/console/documents/{channel.id}/{shelved.document}"
    for path in ("/console/uploads", f"/console/uploads/held/{'0' * 32}", document, f"{document}/again"):
        refused = await browser.send("POST", path, FORM, data={"title": "Mine"})
        assert (refused.status, "An admin can do it" in await refused.text()) == (403, True)
    approve = await browser.send("POST", "/console/folders/1/approve", SCRIPT, json={"documents": []})
    assert approve.status == 403
    question = {"channel": channel.id, "question": "Who?"}
    assert (await browser.send("POST", "/console/ask", SCRIPT, json=question)).status == 200
    assert house.answering.asked[-1].asker.endswith(ADA)
    foreign = SCRIPT | {"Origin": "https://evil.example"}
    assert (await browser.send("POST", "/console/ask", foreign, json=question)).status == 403
    assert [one.action for one in await audited(house)] == ["sign in"]


async def test_a_reader_sees_the_channels_of_their_groups_only(
    open_browser: Open, house: House, provider: ForgingProvider
) -> None:
    """Another channel counts as missing on every page, in every list and to every question."""
    theirs, other = await house.channel("beta"), await house.channel("alpha")
    pages = {}
    for channel in (theirs, other):
        shelved = await house.shelve(channel, f"{channel.name}.pdf", make_pdf([[f"Plan {channel.name}"]]))
        pages[channel.id] = f"/console/pages/{shelved.version}"
        record = {"question": f"Who leads {channel.name}?", "searched": "", "answer": "", "citations": []}
        record |= {"figures": [], "milliseconds": {"total": 1}, "tokens": {}, "searches": [{"unknown": []}]}
        await house.stores.records.keep("q1", channel.id, utc_now(), "not_found", record)
    provider.person = {"sub": ADA, "groups": ["staff"]}
    browser = await open_browser(
        oidc_readers="group:staff", oidc_channel_readers="beta=group:staff; alpha=group:hr, x@example.com"
    )
    await browser.sign_in()
    for channel, status in ((theirs, 200), (other, 404)):
        paths = [f"/console/{one}/{channel.id}" for one in ("channels", "search", "conversations", "quality")]
        for path in (*paths, pages[channel.id], f"{pages[channel.id]}/file.pdf"):
            assert (await browser.send("GET", path)).status == status, path
        question = {"channel": channel.id, "question": "Who?"}
        assert (await browser.send("POST", "/console/ask", SCRIPT, json=question)).status == status
    for path in (
        "/",
        "/console/channels",
        "/console/documents",
        "/console/usage.csv",
        "/console/quality.json",
    ):
        listed = await (await browser.send("GET", path)).text()
        assert "beta" in listed, path
        assert "alpha" not in listed, path


async def test_the_console_applies_the_rate_limit_of_chats(open_browser: Open, house: House) -> None:
    """The rate limit covers both pages and all roles; malformed questions do not count."""
    channel = await house.channel("alpha")
    browser = await open_browser()
    await browser.sign_in()
    question = {"channel": channel.id, "question": "When?"}
    page = f"/console/search/{channel.id}"
    assert (
        await browser.send("POST", "/console/ask", SCRIPT, json=question | {"question": ""})
    ).status == 400
    for _ in range(9):
        assert (await browser.send("POST", "/console/ask", SCRIPT, json=question)).status == 200
    assert (await browser.send("POST", page, FORM, data={"question": "When?"})).status == 200
    assert (await browser.send("POST", "/console/ask", SCRIPT, json=question)).status == 429
    refused = await browser.send("POST", page, FORM, data={"question": "When?"})
    assert (refused.status, "many questions" in await refused.text()) == (429, True)


async def test_the_audit_log_names_the_admin_of_a_change(open_browser: Open, house: House) -> None:
    """A correction is stored with the name of its author."""
    channel = await house.channel("alpha")
    shelved = await house.shelve(channel, "plan.pdf", make_pdf([["Plan"]]), "Plan")
    browser = await open_browser()
    await browser.sign_in()
    path = f"/console/documents/{channel.id}/{shelved.document}"
    assert (await browser.send("POST", path, FORM, data={"department": "IT"})).status == 303
    entry = (await audited(house))[-1]
    assert (entry.action, entry.actor.endswith(f":{ADA}")) == ("correct", True)


async def test_feedback_is_erased_by_its_authors_name(open_browser: Open, house: House) -> None:
    """Shows that erasure by the audited name finds the feedback, and another name does not."""
    channel = await house.channel("alpha")
    browser = await open_browser()
    await browser.sign_in()
    question = uuid4().hex
    record = {"searched": "When?", "searches": [], "drafts": [], "citations": []}
    await QuestionRecords(house.database, 30).keep(question, channel.id, utc_now(), "passages", record)
    said = {"channel": channel.id, "question": question, "verdict": "good"}
    assert (await browser.send("POST", "/console/feedback", SCRIPT, json=said)).status == 200
    actor = (await audited(house))[0].actor
    for name, found in ((actor, 1), (f"{actor}.au", 0)):
        target = await person_target(house.database, name)
        assert len((await words_of(house.database, target)).deleted.get(FeedbackRow, ())) == found


async def test_a_provider_outage_is_reported_and_sessions_continue(
    open_browser: Open, provider: ForgingProvider
) -> None:
    """Existing sessions and the local console secret keep working."""
    early = await open_browser()
    await early.sign_in()
    provider.is_down = True
    browser = await open_browser(console=True)
    down = await browser.send("GET", "/")
    assert (down.status, "Sign-in isn’t working right now" in await down.text()) == (503, True)
    fetched = len(provider.fetches)
    assert (await browser.send("GET", "/")).status == 503
    assert len(provider.fetches) == fetched  # no retry for a while
    assert (await early.send("GET", "/console/documents")).status == 200
    here = await browser.client.get("/console/documents", headers=SIGNED_IN)
    assert here.status == 200
    locked = await browser.client.get("/console/documents", headers={"Accept": "text/html"})
    assert (locked.status, "printed when it started" in await locked.text()) == (401, True)


@pytest.mark.parametrize(
    "metadata",
    [{"issuer": "https://evil.example"}, {"jwks_uri": "http://evil.example/"}, {"token_endpoint": None}],
)
async def test_invalid_issuer_metadata_counts_as_an_outage(
    open_browser: Open, provider: ForgingProvider, metadata: dict[str, Any]
) -> None:
    """No browser and no secret is sent to another issuer or to a URL without TLS."""
    provider.metadata = metadata
    browser = await open_browser()
    assert (await browser.send("GET", "/")).status == 503


async def test_scripts_get_a_401_without_redirect(open_browser: Open) -> None:
    """Without a session a fetch or form gets 401, and none starts a sign-in."""
    browser = await open_browser()
    for method, path, headers in (
        ("GET", "/console/channels", SCRIPT),
        ("GET", "/console/documents", PAGE | {"Sec-Fetch-Mode": "no-cors"}),
        ("POST", "/console/ask", SCRIPT),
        ("POST", "/console/uploads", FORM),
    ):
        refused = await browser.send(method, path, headers)
        assert (refused.status, browser.cookies) == (401, {})


async def test_without_sign_in_the_console_is_off_under_a_public_url(visit: Visit, house: House) -> None:
    """Shows the default without a provider."""
    house.public_url = PUBLIC
    client = await visit()
    for path in ("/", "/console/documents", CALLBACK, "/console/sign-out"):
        assert (await client.get(path, headers=PAGE)).status == 404
