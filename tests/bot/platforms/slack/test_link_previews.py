"""Previews of our own links, unfurled only in the channel that a link belongs to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from engines.support.slack_judges import message_faults
from fakes.memory_inbox import service_with
from fakes.slack_api import slack_api
from fakes.slack_events import Signed, envelope
from harness.waiting import until

from bot.core.ports import LinkPreview
from bot.platforms.slack.adapter import SlackAdapter
from bot.platforms.slack.surfaces.link_previews import LinkPreviews, preview_blocks, read_shared_links
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.errors import DatabaseUnavailable
from storage.models import TenantName

SECRET = "signing-secret-of-the-test"
IT, HR, DIRECT = "C0ITOPS01", "C0HRTEAM1", "D0ALICE01"


def link_to(channel: str) -> str:
    """Return a link that belongs to a channel."""
    return f"https://docs.example/v/sl_T0ACME001_{channel}"


def shared(*urls: str, channel: str = IT, **changed: Any) -> dict[str, Any]:
    """Return Slack's event for links that Alice posted in a channel."""
    links = [{"domain": "docs.example", "url": url} for url in urls]
    event = {"channel": channel, "user": "U0ALICE01", "message_ts": "17.1", "links": links}
    posted = {"type": "link_shared", "source": "conversations_history"}
    return envelope("Ev1", **event | posted | changed)


@dataclass
class Slack:
    """Accepts previews, unless told to refuse."""

    url: str = ""
    refusal: str = ""
    unfurled: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Handle ``chat.unfurl``."""
        assert request.match_info["method"] == "chat.unfurl"
        self.unfurled.append(await request.json())
        return web.json_response({"ok": not self.refusal, "error": self.refusal})


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    """Yield a fake Slack on loopback."""
    slack = Slack()
    async with slack_api(slack.handle) as slack.url:
        yield slack


async def preview(url: str) -> LinkPreview | None:
    """Return a preview of the channel that a link of ours names."""
    if "docs.example" not in url:
        return None
    return LinkPreview(TenantName(url.rpartition("/")[2]), "p. 4 · Handbook", "Daily.")


async def test_a_posted_link_gets_its_page_and_passage(
    slack: Slack,
    settings_for: Callable[..., BotSettings],
    new_inbox: Callable[[], Any],
    door_for: Callable[..., SlackAdapter],
) -> None:
    """The preview is plain text without links and mentions."""
    door = door_for(settings_for(slack.url, slack_signing_secret=SECRET), new_inbox())
    app = web.Application()
    door.add_routes(app)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        signed = Signed(session, str(server.make_url("")).rstrip("/"), SECRET)
        assert await signed.send(shared(link_to(IT))) == 200

        async def unfurled() -> list[dict[str, Any]]:
            return slack.unfurled

        (sent,) = await until(unfurled)
    assert (sent["channel"], sent["ts"]) == (IT, "17.1")
    blocks = sent["unfurls"][link_to(IT)]["blocks"]
    assert blocks[0]["elements"][0]["text"] == "p. 1 · Rules"
    assert blocks[1]["text"]["text"] == "“Daily &amp; &lt;nightly&gt;.”"
    await door.stop()


async def ended() -> None:
    """Wait until all previews are posted or failed."""
    await asyncio.gather(*(one for one in asyncio.all_tasks() if one.get_name() == "link-previews"))


async def previewed(slack: Slack, *events: dict[str, Any]) -> list[str]:
    """Return the URLs that got a preview after these events."""
    previews = LinkPreviews(web_client("xoxb-test", slack.url), service_with(preview=preview))
    for event in events:
        if found := read_shared_links(event):
            previews.add(found)
    await ended()
    await previews.aclose()
    return [url for sent in slack.unfurled for url in sent["unfurls"]]


async def test_only_links_of_the_channel_itself_are_previewed(slack: Slack) -> None:
    """Only this channel's links of a message are unfurled; for other links Slack is not called."""
    mixed = shared(link_to(HR), link_to(IT), "https://elsewhere.example/v/x")
    assert await previewed(slack, mixed) == [link_to(IT)]
    slack.unfurled.clear()
    elsewhere = [shared(link_to(IT), channel=one) for one in (HR, DIRECT)]
    assert await previewed(slack, *elsewhere, shared("https://elsewhere.example/v/x")) == []


@pytest.mark.parametrize(
    "event",
    [
        shared(link_to(IT), source="composer"),
        shared(link_to(IT)) | {"is_ext_shared_channel": True},
        shared(link_to(IT), channel="not one"),
        shared(link_to(IT), message_ts=None),
        shared(link_to(IT)) | {"authorizations": []},
        shared(link_to(IT), type="message"),
        shared(),
    ],
    ids=[
        "composer",
        "shared with strangers",
        "no channel",
        "no message",
        "no workspace",
        "another",
        "no link",
    ],
)
async def test_nothing_is_previewed_where_outsiders_may_read(slack: Slack, event: dict[str, Any]) -> None:
    """Drafts, channels shared with another organisation, and events without a channel."""
    assert await previewed(slack, event) == []


async def test_a_preview_that_fails_is_no_error(slack: Slack) -> None:
    """Slack refuses or the database is down: the link stays unchanged."""
    slack.refusal = "cannot_unfurl_url"
    await previewed(slack, shared(link_to(IT)))
    assert len(slack.unfurled) == 1

    async def away(url: str) -> LinkPreview | None:
        raise DatabaseUnavailable("away")

    previews = LinkPreviews(web_client("xoxb-test", slack.url), service_with(preview=away))
    found = read_shared_links(shared(link_to(IT)))
    assert found
    previews.add(found)
    await ended()
    await previews.aclose()
    assert len(slack.unfurled) == 1


def test_a_preview_is_within_slacks_limits() -> None:
    """Covers a very long passage; a link that marks nothing shows only its page."""
    long = LinkPreview(TenantName("sl_T1_C1"), "p. 4 · Handbook", "a & b\n" * 2000)
    assert message_faults(preview_blocks(long)) == []
    assert len(json.dumps(preview_blocks(long))) < 4000
    assert len(preview_blocks(LinkPreview(TenantName("sl_T1_C1"), "p. 4 · Handbook", ""))) == 1
