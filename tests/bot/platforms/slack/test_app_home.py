"""App Home: shows the channels that Slack lists for the person at that moment, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from engines.support.slack_judges import faults_of
from fakes.memory_inbox import service_with
from fakes.slack_api import slack_api
from fakes.slack_events import envelope
from harness.waiting import until

from bot.chat.notifications.notification_wording import (
    HOME_NO_CHANNELS,
    HOME_RECENT,
    HOME_UNKNOWN,
    RECENT_DIRECT,
)
from bot.core.ports import ChannelOverview
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.question_buttons import asked_line, question_blocks
from bot.platforms.slack.surfaces.app_home import AppHome, HomeVisit, home_view, read_opened
from bot.platforms.slack.web_api import web_client
from storage.chat_models import RecentQuestion
from storage.errors import DatabaseUnavailable
from storage.models import ChannelKey, Platform, TenantName

TEAM, ALICE, BOB = "T0ACME001", "U0ALICE01", "U0BOB0001"
IT, HR, BOARD, DIRECT = "C0ITOPS01", "C0HRTEAM1", "G0BOARD01", "D0ALICE01"
VISIT = HomeVisit(TEAM, ALICE, DIRECT)


@dataclass
class Slack:
    """Knows the channels of each person; lists one channel per page."""

    members: dict[str, list[str]] = field(default_factory=lambda: {ALICE: [IT, HR], BOB: [BOARD]})
    is_silent: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.Response:
        """Handle ``users.conversations`` and ``views.publish``."""
        body = await request.json() if request.content_type == "application/json" else {}
        body |= dict(request.query) | dict(await request.post())
        if request.match_info["method"] == "views.publish":
            view = body["view"]
            self.views[body["user_id"]] = json.loads(view) if isinstance(view, str) else view
            return web.json_response({"ok": True})
        self.asked.append(body)
        if self.is_silent:
            return web.json_response({"ok": False, "error": "missing_scope"})
        start, channels = int(body.get("cursor") or 0), self.members[body["user"]]
        more = str(start + 1) if start + 1 < len(channels) else ""
        page = [{"id": one, "name": f"name-of-{one}"} for one in channels[start : start + 1]]
        reply = {"ok": True, "channels": page, "response_metadata": {"next_cursor": more}}
        return web.json_response(reply)

    async def shown(self, user: str) -> str:
        """Return the text of a person's App Home once it is published."""

        async def published() -> dict[str, Any] | None:
            return self.views.pop(user, None)

        return json.dumps(await until(published), ensure_ascii=False)


async def overviews(tenants: Collection[TenantName]) -> Sequence[ChannelOverview]:
    """Return one overview per channel, with a document named after it."""
    return [ChannelOverview(one, one, f"document of {one}", (f"What is {one}?",)) for one in sorted(tenants)]


async def recent(user: str, tenants: Collection[TenantName], limit: int) -> Sequence[RecentQuestion]:
    """Return one question per channel for each person."""
    place = {"channel": DIRECT, "key": f"{TEAM}:{DIRECT}:16.0001"}, {"channel": DIRECT, "ts": "17.0001"}
    return [RecentQuestion(one, f"{user} on {one}", *place) for one in sorted(tenants)][:limit]


async def no_overviews(tenants: Collection[TenantName]) -> Sequence[ChannelOverview]:
    """Raise DatabaseUnavailable."""
    raise DatabaseUnavailable("the database is away")


@pytest.fixture
async def slack() -> AsyncIterator[tuple[Slack, str]]:
    """Yield a fake Slack and its URL."""
    slack = Slack()
    async with slack_api(slack.handle) as url:
        yield slack, url


async def test_a_person_sees_the_channels_that_slack_lists(slack: tuple[Slack, str]) -> None:
    """Channels are looked up on each visit; one that the person left is gone from the next home."""
    double, url = slack
    home = AppHome(web_client("xoxb-test", url), service_with(overviews=overviews, recent_of=recent))
    for person, seen, unseen in ((ALICE, [IT, HR], [BOARD]), (BOB, [BOARD], [IT, HR])):
        home.publish(HomeVisit(TEAM, person, DIRECT))
        words = await double.shown(person)
        assert all(f"document of sl_{TEAM}_{one}" in words for one in seen)
        assert all(f"#name-of-{one}" in words for one in seen)
        assert not any(one in words for one in unseen)
        assert HOME_RECENT in words
        link = f"<https://slack.com/archives/{DIRECT}/p170001|{person} on sl_{TEAM}"
        assert f"{link}_{DIRECT}> ({RECENT_DIRECT})" in words
        assert all(f"{link}_{one}> (#name-of-{one})" in words for one in seen)
    assert {asked["user"] for asked in double.asked} == {ALICE, BOB}
    double.members[ALICE] = [HR]
    home.publish(VISIT)
    words = await double.shown(ALICE)
    assert HR in words
    assert IT not in words
    double.members[ALICE] = []
    home.publish(VISIT)
    assert HOME_NO_CHANNELS in await double.shown(ALICE)
    await home.aclose()


@pytest.mark.parametrize("is_silent", [True, False], ids=["Slack", "SQL"])
async def test_only_help_is_shown_when_memberships_are_unknown(
    slack: tuple[Slack, str], is_silent: bool
) -> None:
    """Without Slack or the database no known channel is shown, and no error."""
    double, url = slack
    double.is_silent = is_silent
    read = overviews if is_silent else no_overviews
    home = AppHome(web_client("xoxb-test", url), service_with(overviews=read, recent_of=recent))
    home.publish(VISIT)
    words = await double.shown(ALICE)
    assert HOME_UNKNOWN in words
    assert "document of" not in words
    await home.aclose()


async def test_a_home_being_built_is_not_built_twice(slack: tuple[Slack, str]) -> None:
    """Slack sends an event for each visit."""
    double, url = slack
    double.members[ALICE] = [IT]
    home = AppHome(web_client("xoxb-test", url), service_with(overviews=overviews, recent_of=recent))
    for _ in range(5):
        home.publish(VISIT)
    await double.shown(ALICE)
    assert len(double.asked) == 1
    await home.aclose()


def click(channel: str = IT, **changed: Any) -> dict[str, Any]:
    """Return Alice's click on the first question of a channel in her home, with fields changed."""
    tenant = ChannelKey(Platform("slack"), TEAM, channel).tenant
    _, block = question_blocks(["When do <backups> run?"], tenant)
    action = {name: block["accessory"][name] for name in ("action_id", "value")}
    return {
        "type": "block_actions",
        "team": {"id": TEAM},
        "enterprise": None,
        "is_enterprise_install": False,
        "user": {"id": ALICE, "team_id": TEAM},
        "container": {"type": "view", "view_id": "V1"},
        "view": {"type": "home", "private_metadata": DIRECT},
        "actions": [action | {"block_id": block["block_id"], "action_ts": "18.0001"}],
        **changed,
    }


async def test_a_click_asks_only_a_channel_that_the_person_is_in_now(slack: tuple[Slack, str]) -> None:
    """The answer goes to the person's direct chat; after leaving the channel they get a home without it."""
    double, url = slack
    home = AppHome(web_client("xoxb-test", url), service_with(overviews=overviews, recent_of=recent))
    message = await home.read_click(click())
    assert message
    assert message.key == ChannelKey(Platform("slack"), TEAM, IT)
    assert message.text == "When do <backups> run?"
    place = {name: message.address[name] for name in ("channel", "ts", "thread", "user")}
    assert place == {"channel": DIRECT, "ts": "18.0001", "thread": None, "user": ALICE}
    assert (
        asked_line(SlackAddress.from_json(message.address))
        == f"<@{ALICE}> <#{IT}>: When do &lt;backups&gt; run?"
    )
    double.members[ALICE] = [HR]
    assert await home.read_click(click()) is None
    assert IT not in await double.shown(ALICE)
    double.is_silent = True
    assert await home.read_click(click(HR)) is None
    assert HOME_UNKNOWN in await double.shown(ALICE)
    await home.aclose()


async def test_what_is_typed_is_asked_in_the_direct_chat(slack: tuple[Slack, str]) -> None:
    """The answer shows the question, which Slack does not; an empty field and outsiders ask nothing."""
    home = AppHome(web_client("xoxb-test", slack[1]), service_with(overviews=overviews, recent_of=recent))
    action = {"action_id": "ask-home", "block_id": "ask-home", "value": " When? ", "action_ts": "18.0001"}
    message = await home.read_click(click(actions=[action]))
    assert message
    assert (message.key.conversation, message.text, message.is_direct) == (DIRECT, "When?", True)
    assert asked_line(SlackAddress.from_json(message.address)) == f"<@{ALICE}>: When?"
    assert await home.read_click(click(actions=[action | {"value": " "}])) is None
    outsider = {"user": {"id": ALICE, "team_id": "T0OTHER01"}}
    assert await home.read_click(click(actions=[action], **outsider)) is None
    await home.aclose()


@pytest.mark.parametrize(
    "changed",
    [
        {"view": {"type": "modal", "private_metadata": DIRECT}},
        {"view": {"type": "home", "private_metadata": ""}},
        {"view": None},
        {"user": {"id": ALICE, "team_id": "T0OTHER01"}},
        {"user": None},
        {"team": {"id": "T0OTHER01"}},
        {"actions": []},
        {
            "actions": [
                {"action_id": "ask-1", "block_id": f"ask:2:sl_{TEAM}_{IT}", "value": "?", "action_ts": "1"}
            ]
        },
        {"actions": [{"action_id": "ask-1", "block_id": f"ask:1:sl_{TEAM}_{IT}", "value": "Why?"}]},
    ],
    ids=str,
)
async def test_a_click_not_on_a_home_question_asks_nothing(
    slack: tuple[Slack, str], changed: dict[str, Any]
) -> None:
    """Covers other views, workspaces, people and blocks: Slack is not even called."""
    double, url = slack
    home = AppHome(web_client("xoxb-test", url), service_with(overviews=overviews, recent_of=recent))
    assert await home.read_click(click(**changed)) is None
    assert double.asked == []


def test_a_home_of_many_long_lists_fits_into_slacks_limits() -> None:
    """The limits are 100 blocks, 3000 characters per section and 150 per header."""
    long = "\n".join(f"• A document & its <title> {number}" for number in range(400))
    tenants = [TenantName(f"sl_{TEAM}_{IT}{number}") for number in range(10)]
    many = [ChannelOverview(one, "#" + "x" * 200, long, ("Why & how?",) * 3) for one in tenants]
    view = home_view(many, ["What about <this>? " + "x" * 200] * 5)
    assert "<title>" not in json.dumps(view)
    assert faults_of("views.publish", {"user_id": ALICE, "view": view}) == []


def test_only_the_home_tab_is_a_home() -> None:
    """The messages tab sends the same event type."""
    opened = envelope("Ev1", type="app_home_opened", user=ALICE, channel="not one", tab="home")
    assert read_opened(opened, "home") is None
    opened["event"]["channel"] = DIRECT
    assert read_opened(opened, "home") == VISIT
    opened["event"]["tab"] = "messages"
    assert read_opened(opened, "home") is None
    assert read_opened(opened, "messages") == VISIT
    other = envelope("Ev1", type="message", user=ALICE, channel=DIRECT, tab="home")
    assert read_opened(other, "home") is None
    nobody = envelope("Ev1", type="app_home_opened", user="not one", channel=DIRECT, tab="home")
    assert read_opened(nobody, "home") is None
