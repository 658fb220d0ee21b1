"""Channel names are looked up in Slack rarely, and no answer waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web
from fakes.memory_inbox import service_with
from fakes.slack_api import slack_api
from harness.clocks import advance_clocks
from harness.waiting import until_true

from bot.platforms.slack.web_api import web_client
from bot.platforms.slack.workspace.channel_names import NAME_TTL_SECONDS, RETRY_SECONDS, ChannelNames
from storage.models import ChannelKey, Platform

IT = ChannelKey(Platform("slack"), "T0ACME001", "C0ITOPS01")
DIRECT = ChannelKey(Platform("slack"), "T0ACME001", "D0ALICE01")


class Slack:
    """Answers with a channel or an error; records requests and learnt names."""

    def __init__(self) -> None:
        self.reply: dict[str, object] = {"ok": True, "channel": {"id": "C0ITOPS01", "name": "it-ops"}}
        self.asked = 0
        self.learnt: list[tuple[ChannelKey, str]] = []

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one call of ``conversations.info``."""
        assert request.path.endswith("/conversations.info")
        self.asked += 1
        return web.json_response(self.reply)

    async def learn(self, key: ChannelKey, name: str) -> None:
        """Record a name."""
        self.learnt.append((key, name))

    async def until_asked(self, count: int) -> None:
        """Wait until ``count`` requests have arrived and been processed."""

        def is_over() -> bool:
            names = {task.get_name() for task in asyncio.all_tasks()}
            return self.asked == count and "channel-name" not in names

        await until_true(is_over)


@pytest.fixture
def slack() -> Slack:
    """Return a fake Slack with one channel."""
    return Slack()


@pytest.fixture
async def names(slack: Slack) -> AsyncIterator[ChannelNames]:
    """Yield the names of that Slack."""
    async with slack_api(slack.handle) as url:
        names = ChannelNames(web_client("xoxb-test", url), service_with(name_channel=slack.learn))
        yield names
        await names.aclose()


async def test_a_name_is_looked_up_once_an_hour(slack: Slack, names: ChannelNames) -> None:
    """A burst of questions sends one request; a renamed channel is noticed later.

    Direct messages have no name.
    """
    for key in (IT, IT, DIRECT):
        names.refresh(key)
    await slack.until_asked(1)
    names.refresh(IT)
    await slack.until_asked(1)
    assert slack.learnt == [(IT, "#it-ops")]
    slack.reply = {"ok": True, "channel": {"id": "C0ITOPS01", "name": "it"}}
    with advance_clocks(timedelta(seconds=NAME_TTL_SECONDS + 1)):
        names.refresh(IT)
        await slack.until_asked(2)
    assert slack.learnt[1:] == [(IT, "#it")]


async def test_a_refusal_is_no_error_and_is_tried_again_later(
    slack: Slack, names: ChannelNames, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing scope is logged once, without naming a channel."""
    slack.reply = {"ok": False, "error": "missing_scope"}
    names.refresh(IT)
    await slack.until_asked(1)
    names.refresh(IT)
    await slack.until_asked(1)
    with advance_clocks(timedelta(seconds=RETRY_SECONDS + 1)):
        names.refresh(IT)
        await slack.until_asked(2)
    assert slack.learnt == []
    assert "SlackApiError" in caplog.text
    assert "C0ITOPS01" not in caplog.text


async def test_a_group_conversation_has_no_name_to_show(slack: Slack, names: ChannelNames) -> None:
    """Slack generates its name from the members' names."""
    slack.reply = {"ok": True, "channel": {"id": "C0ITOPS01", "name": "mpdm-a--b-1", "is_mpim": True}}
    names.refresh(IT)
    await slack.until_asked(1)
    assert slack.learnt == []
