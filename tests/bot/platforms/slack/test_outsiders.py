"""People of another organisation in a shared channel get one ephemeral notice instead of an answer."""

from __future__ import annotations

from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness.tables import for_each

from bot.core.models import Language
from bot.core.wording import reply_words
from bot.platforms.slack.events import is_outsider, read_outsider
from bot.platforms.slack.private_questions import read_command, read_share
from bot.platforms.slack.surfaces.app_home import read_opened
from bot.platforms.slack.workspace.app_manifest import PATH

BOT, HOME, ELSEWHERE = "U0BOT0001", "T0ACME001", "T0OTHER01"


def asked(team: str, **event: Any) -> dict[str, Any]:
    """Return a mention by a member of ``team`` in a shared channel."""
    said = {"type": "app_mention", "user": "U0GUEST01", "channel": "C0SHARED1", "ts": "17.1", "text": "Wann?"}
    return {
        "type": "event_callback",
        "team_id": HOME,
        "event_id": "Ev1",
        "is_ext_shared_channel": True,
        "authorizations": [{"team_id": HOME, "user_id": BOT, "is_enterprise_install": False}],
        "event": {**said, "user_team": team, **event},
    }


@for_each(
    ("envelope", "place"),
    [
        (asked(ELSEWHERE), {"channel": "C0SHARED1", "user": "U0GUEST01"}),
        (
            asked(ELSEWHERE, thread_ts="16.1"),
            {"channel": "C0SHARED1", "user": "U0GUEST01", "thread_ts": "16.1"},
        ),
        (asked(HOME), None),
        (asked(ELSEWHERE, bot_id="B1"), None),
        (asked(ELSEWHERE, type="message", channel_type="channel", text=f"<@{BOT}> Wann?"), None),
        ({**asked(ELSEWHERE), "is_ext_shared_channel": False}, None),
    ],
)
def test_only_a_mention_by_an_outsider_is_refused(
    envelope: dict[str, Any], place: dict[str, str] | None
) -> None:
    """Our own people, bots, and the twin event of a mention get no notice."""
    assert read_outsider(envelope) == (place and (place, "Wann?"))


ENTERPRISE = "E0ACME001"
API = "https://slack.com/api/"


def event(team: str | None) -> dict[str, Any]:
    """Return an App Home event in an organisation, by a member of ``team``."""
    opened = {"type": "app_home_opened", "user": "U0GUEST01", "channel": "D0GUEST01", "tab": "home"}
    return {
        "type": "event_callback",
        "authorizations": [{"team_id": HOME, "enterprise_id": ENTERPRISE, "user_id": BOT}],
        "event": opened | ({"user_team": team} if team else {}),
    }


def command(team: str | None) -> dict[str, Any]:
    """Return a slash command by a member of ``team``."""
    url, named = "https://hooks.slack.com/commands/1/2/3", {"user_team_id": team} if team else {}
    ids = {"team_id": HOME, "enterprise_id": ENTERPRISE, "channel_id": "C0SHARED1", "user_id": "U0GUEST01"}
    return {**ids, "text": "Wann?", "trigger_id": "13.17.abc", "response_url": url, **named}


def click(team: str | None) -> dict[str, Any]:
    """Return a click on the share button by a member of ``team``; shortcuts have the same fields."""
    return {
        "team": {"id": HOME},
        "enterprise": {"id": ENTERPRISE},
        "user": {"id": "U0GUEST01", **({"team_id": team} if team else {})},
        "actions": [{"value": "key"}],
        "response_url": "https://hooks.slack.com/actions/1/2/3",
    }


@for_each(
    ("make", "read"),
    [
        (event, lambda body: read_opened(body, "home")),
        (command, lambda body: read_command(body, API)),
        (click, lambda body: read_share(body, API)),
    ],
)
def test_every_endpoint_of_an_org_wide_install_checks_outsiders(make: Any, read: Any) -> None:
    """Other workspaces and organisations are refused; our own people are not."""
    for team in (ELSEWHERE, "E0OTHER01"):
        assert is_outsider(make(team))
        assert read(make(team)) is None
    for team in (HOME, ENTERPRISE, None):
        assert not is_outsider(make(team))
        assert read(make(team))


async def test_an_outsider_gets_an_ephemeral_notice(
    new_inbox: Any, settings_for: Any, door_for: Any, sign: Any
) -> None:
    """The notice is in the person's language; the question is not stored."""
    said: list[tuple[str, dict[str, Any]]] = []

    async def handle(request: web.Request) -> web.Response:
        said.append((request.match_info["method"], await request.json()))
        return web.json_response({"ok": True})

    slack = web.Application()
    slack.add_routes([web.post("/api/{method}", handle)])
    inbox, ours = new_inbox(), web.Application()
    async with TestServer(slack) as api, aiohttp.ClientSession() as session:
        settings = settings_for(str(api.make_url("/api/")), slack_signing_secret="secret-of-this-test")
        door_for(settings, inbox).add_routes(ours)
        async with TestServer(ours) as server:
            body = web.json_response(asked(ELSEWHERE, text="Wann ist die Sicherung der Daten?")).body
            headers = {
                name.replace("_", "-"): value for name, value in sign(body, "secret-of-this-test").items()
            }
            headers["Content-Type"] = "application/json"
            async with session.post(server.make_url(PATH), data=body, headers=headers) as response:
                assert response.status == 200
    ((method, sent),) = said
    assert method == "chat.postEphemeral"
    assert (sent["channel"], sent["user"]) == ("C0SHARED1", "U0GUEST01")
    assert sent["text"] == reply_words(Language.GERMAN).outsider
    assert inbox.arrivals == 0
