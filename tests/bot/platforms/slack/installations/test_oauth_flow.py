"""Slack's OAuth install flow: states that are forged, expired or already used are refused."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fakes.oauth_slack import CLIENT_ID, ORGANISATION, OAuthSlack
from harness.clocks import shift_wall_clock
from harness.oauth_house import House, oauth_settings
from harness.tables import for_each
from pydantic import SecretStr
from sources import ROOT

from bot.answers.citations.signed_links import KeyRing
from bot.cli.log_format import QUIET_LIBRARIES
from bot.platforms.slack.installations import oauth
from bot.platforms.slack.installations.installation_store import SignedStates
from bot.platforms.slack.installations.token_cipher import Tokens, open_token_cipher
from storage.errors import SettingsError
from storage.models import ChannelKey, Platform
from storage.settings import StorageSettings

ACME, BETA = "T0ACME001", "T0BETA001"

# slack_sdk sends the client secret with BasicAuth
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Capture logs at DEBUG level, as `serve --verbose` does, without aiohttp's access log."""
    caplog.set_level(logging.DEBUG)
    for library in (*QUIET_LIBRARIES, "aiohttp.access"):
        caplog.set_level(logging.WARNING, library)
    return caplog


def bytes_of(home: Path) -> bytes:
    """Return the bytes of all files in a home."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


async def test_a_workspace_installs_the_app(
    house: House, slack: OAuthSlack, logged: pytest.LogCaptureFixture
) -> None:
    """Asks Slack for the manifest's scopes; the token it returns is stored encrypted and shown nowhere."""
    _, _, page = await house.begin(ACME)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
    assert page.startswith(f"{slack.url}/oauth/v2/authorize?")
    assert asked["client_id"] == CLIENT_ID
    assert asked["redirect_uri"] == f"{house.url}/slack/oauth_redirect"
    manifest = json.loads((ROOT / "deploy" / "slack-manifest.json").read_text())
    assert asked["scope"].split(",") == manifest["oauth_config"]["scopes"]["bot"]
    words = await house.install(ACME)
    assert words == f"Footnote is installed in Workspace {ACME}. Invite it to a channel: /invite @Footnote"
    (held,) = await house.installations.all()
    assert (held.installation, held.name) == (ACME, f"Workspace {ACME}")
    assert b"CANARY" not in bytes_of(house.home)
    assert b"CANARY" not in held.sealed
    assert "CANARY" not in logged.text
    assert (house.home / "token_keys.json").stat().st_mode & 0o777 == 0o600
    client = await house.door._oauth.workspaces.client_for(ACME)  # type: ignore[union-attr]
    assert slack.tokens[str(client.token)] == ACME
    assert client.installation == ACME, "whose channels it names"


async def test_made_up_codes_ask_slack_little(house: House, slack: OAuthSlack) -> None:
    """Sixty simultaneous callbacks: a few wait, most get 503 and their states stay valid."""
    begun = [await house.begin() for _ in range(60)]
    back = [house.finish(cookies, state=state, code="made up") for state, cookies, _ in begun]
    answers = await asyncio.gather(*back)
    refused = [one for one, answer in zip(begun, answers, strict=True) if answer == (503, oauth.BUSY)]
    assert len(refused) > 30
    assert len(slack.exchanges) == 60 - len(refused)
    state, cookies, _ = refused[0]
    assert (await house.finish(cookies, state=state, code=slack.new_code(ACME)))[0] == 200


async def test_query_parameters_are_not_forwarded_to_slacks_url(house: House) -> None:
    """An install link on our site cannot be used to request more scopes from Slack."""
    for team in ("T1&scope=admin", "T1%26scope%3Dadmin", "T1\r\nX: y"):
        async with house.session.get(
            f"{house.url}/slack/install", params={"team": team}, allow_redirects=False
        ) as response:
            assert response.status == 302
            assert "admin" not in response.headers["Location"]
            assert "team=" not in response.headers["Location"]


async def test_forged_missing_and_foreign_states_are_refused(house: House, slack: OAuthSlack) -> None:
    """Refuses a forged state with a matching cookie, no state, and a state of another browser."""
    state, _, _ = await house.begin()
    code = slack.new_code(ACME)
    forged = {"slack-app-oauth-state": "forged"}
    assert await house.finish(forged, state="forged", code=code) == (401, oauth.REFUSED)
    assert await house.finish(forged, code=code) == (400, oauth.REFUSED)
    assert await house.finish({}, state=state, code=code) == (400, oauth.REFUSED)
    assert await house.finish(forged, state=state, code=code) == (400, oauth.REFUSED)
    assert (slack.exchanges, await house.installations.all()) == ([], [])


async def test_a_state_is_good_for_ten_minutes(house: House, slack: OAuthSlack) -> None:
    """A state is accepted after 599 seconds and refused after 601."""
    for seconds, status in ((599, 200), (601, 401)):
        state, cookies, _ = await house.begin()
        with shift_wall_clock(timedelta(seconds=seconds)):
            given, _ = await house.finish(cookies, state=state, code=slack.new_code(ACME))
        assert given == status
    assert len(slack.exchanges) == 1


async def test_many_pending_installations_evict_no_other() -> None:
    """Pending installations occupy no storage; a state signed with another secret is invalid."""
    states = SignedStates("client secret")
    first = await states.async_issue()
    others = [await states.async_issue() for _ in range(1000)]
    assert await states.async_consume(first)
    assert [await states.async_consume(one) for one in (first, others[0], others[0])] == [False, True, False]
    for forged in (await SignedStates("another").async_issue(), f"9{others[1]}", "\udcff.1.\udcff", "..", ""):
        assert not await states.async_consume(forged)


async def test_a_state_is_good_once(house: House, slack: OAuthSlack) -> None:
    """The code of a second use is not even sent to Slack."""
    state, cookies, _ = await house.begin()
    assert (await house.finish(cookies, state=state, code=slack.new_code(ACME)))[0] == 200
    second = await house.finish(cookies, state=state, code=slack.new_code(BETA))
    assert second == (401, oauth.REFUSED)
    assert len(slack.exchanges) == 1
    assert [one.installation for one in await house.installations.all()] == [ACME]


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ({"error": "access_denied"}, 200, oauth.CANCELLED),
        ({"error": "<script>CANARY</script>"}, 200, oauth.NO_CODE),
        ({"code": "code-of-nobody-CANARY"}, 401, oauth.NO_CODE),
        ({}, 401, oauth.NO_CODE),
    ],
)
async def test_an_unconfirmed_installation_is_not_stored(
    house: House,
    query: dict[str, str],
    status: int,
    sentence: str,
    logged: pytest.LogCaptureFixture,
) -> None:
    """The error page says so; neither the page nor the log repeats the URL's parameters."""
    state, cookies, _ = await house.begin()
    assert await house.finish(cookies, state=state, **query) == (status, sentence)
    assert await house.installations.all() == []
    assert "CANARY" not in logged.text
    assert state not in logged.text


async def test_nothing_is_installed_while_slack_is_down(house: House, slack: OAuthSlack) -> None:
    """An OAuth response without a bot token installs nothing either; a later attempt succeeds."""
    slack.has_bot = False
    state, cookies, _ = await house.begin()
    code = slack.new_code(ACME)
    assert await house.finish(cookies, state=state, code=code) == (500, oauth.NO_CODE)
    slack.has_bot, slack.is_down = True, True
    state, cookies, _ = await house.begin()
    assert await house.finish(cookies, state=state, code=code) == (502, oauth.UNREACHABLE)
    assert await house.installations.all() == []
    slack.is_down = False
    assert ACME in await house.install(ACME)


async def test_a_whole_organisation_installs_it_once(house: House, slack: OAuthSlack) -> None:
    """The token of an org-wide installation serves the channels of all its workspaces."""
    assert "Grid" in await house.install(ORGANISATION)
    organisation = {
        "enterprise_id": ORGANISATION,
        "team_id": ACME,
        "user_id": "U0BOT",
        "is_enterprise_install": True,
    }
    await house.ask(ACME, "1700000001.000100", authorizations=[organisation])
    assert await house.until_ended(1) == [("done", None)]
    tenant = ChannelKey(Platform("slack"), ORGANISATION, "C0SAME001").tenant
    (answer,) = slack.called("chat.update", ORGANISATION)
    assert tenant in answer["text"]


@for_each(
    ("others", "named"),
    [
        ({"slack_client_secret": None}, "SLACK_CLIENT_SECRET"),
        ({"slack_client_id": None}, "SLACK_CLIENT_ID"),
        ({"slack_bot_token": "xoxb-CANARY"}, "SLACK_BOT_TOKEN"),
        ({"slack_app_token": "xapp-CANARY"}, "Socket Mode"),
        ({"slack_signing_secret": None}, "SLACK_SIGNING_SECRET"),
        ({"public_url": None}, "FOOTNOTE_PUBLIC_URL"),
        ({"public_url": "http://footnote.example.com"}, "https://"),
    ],
)
def test_inconsistent_settings_are_refused(others: dict[str, Any], named: str) -> None:
    """Each error names the setting to change, and no secret."""
    settings = oauth_settings("https://slack.com/api/", "https://footnote.example.com", **others)
    assert settings.has_slack_oauth
    with pytest.raises(SettingsError, match=named) as refusal:
        oauth.require_oauth_settings(settings)
    assert "CANARY" not in str(refusal.value)


def test_machines_that_share_a_store_need_one_file_of_keys(tmp_path: Path) -> None:
    """Shows that no machine creates a key on its own, and that the file named in the error works."""
    stored = StorageSettings(home=tmp_path / "home", blobs=SecretStr("s3://CANARY/prod"))
    addresses = ("https://slack.com/api/", "https://footnote.example.com")
    with pytest.raises(SettingsError, match="`footnote links rotate --file") as refusal:
        open_token_cipher(oauth_settings(*addresses), stored)
    assert "CANARY" not in str(refusal.value)
    assert not (tmp_path / "home" / "token_keys.json").exists()
    file = tmp_path / "token_keys.json"
    KeyRing(file).keys()
    cipher = open_token_cipher(oauth_settings(*addresses, token_keys=file), stored)
    assert cipher.decrypt("T1", cipher.encrypt("T1", Tokens("xoxb-1"))) == Tokens("xoxb-1")


def test_consistent_settings_are_accepted() -> None:
    """Shows that valid combinations of settings pass the same check."""
    oauth.require_oauth_settings(oauth_settings("https://slack.com/api/", "https://footnote.example.com"))
