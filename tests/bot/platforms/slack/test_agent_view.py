"""Suggested prompts of a direct chat, set when it opens; answers do not depend on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.memory_inbox import service_with
from fakes.slack_api import slack_api
from fakes.slack_events import envelope
from harness.waiting import until

from bot.chat.notifications.notification_wording import ASK_HELP, HELP_PROMPT
from bot.platforms.slack.adapter import SlackAdapter
from bot.platforms.slack.surfaces.agent_view import SuggestedPrompts, prompts
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.errors import DatabaseUnavailable

SECRET = "signing-secret-of-the-test"


@dataclass
class Slack:
    """Sets prompts, or refuses to."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusal: str = ""
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one API call."""
        method = request.match_info["method"]
        body = await request.json() if request.content_type == "application/json" else {}
        self.calls.append((method, body | dict(request.query) | dict(await request.post())))
        if self.refusal:
            return web.json_response({"ok": False, "error": self.refusal})
        return web.json_response({"ok": True})


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    """Yield a fake Slack on loopback."""
    slack = Slack()
    async with slack_api(slack.handle) as slack.url:
        yield slack


async def test_opening_the_chat_sets_suggested_questions_and_help(
    slack: Slack,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
    sign: Callable[[bytes], dict[str, str]],
) -> None:
    """The prompts have no thread_ts: with one Slack would show none of them."""
    door = door_for(settings_for(slack.url, slack_signing_secret=SECRET), new_inbox())
    app = web.Application()
    door.add_routes(app)
    opened = envelope("Ev1", type="app_home_opened", user="U0ALICE01", channel="D0ALICE01", tab="messages")
    body = json.dumps(opened).encode()
    headers = {name.replace("_", "-"): value for name, value in sign(body).items()}
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        headers["Content-Type"] = "application/json"
        async with session.post(server.make_url("/slack/events"), data=body, headers=headers) as response:
            assert response.status == 200
        ((method, sent),) = await until(lambda: called(slack))
    assert method == "assistant.threads.setSuggestedPrompts"
    assert sent["channel_id"] == "D0ALICE01"
    assert "thread_ts" not in sent
    assert sent["prompts"] == prompts(["What is in the library?"])
    await door.stop()


async def called(slack: Slack) -> list[tuple[str, dict[str, Any]]]:
    """Return the API calls that Slack received."""
    return slack.calls


@pytest.mark.parametrize("is_away", [False, True], ids=["Slack refuses", "SQL is away"])
async def test_prompts_that_cannot_be_set_are_no_error(slack: Slack, is_away: bool) -> None:
    """No exception is raised, and the next visit retries."""
    slack.refusal = "missing_scope"

    async def questions(installation: str) -> Sequence[str]:
        if is_away:
            raise DatabaseUnavailable("away")
        return []

    view = SuggestedPrompts(web_client("xoxb-test", slack.url), service_with(direct_questions=questions))
    for _ in range(2):
        view.open("T0ACME001", "D1")
        view.open("T0ACME001", "D1")
        await asyncio.gather(*(one for one in asyncio.all_tasks() if one.get_name() == "suggested-prompts"))
    assert len(slack.calls) == (0 if is_away else 2)
    await view.aclose()


def test_there_are_at_most_four_prompts() -> None:
    """Three suggested questions, whose message is not truncated, and the help prompt."""
    shown = prompts(["What about " + "x" * 100 + "?"] * 5)
    assert len(shown) == 4
    assert max(len(one["title"]) for one in shown) <= 75
    assert shown[0]["message"].endswith("x?")
    assert shown[-1] == {"title": HELP_PROMPT, "message": ASK_HELP}
