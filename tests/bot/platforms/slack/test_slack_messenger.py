"""Posting to Slack through rate limits, errors and unclear outcomes, against a small fake Web API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from aiohttp import web
from fakes.memory_inbox import take_any
from fakes.slack_api import slack_api

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import (
    Answer,
    AnswerFigure,
    AnswerState,
    CitedPage,
    Language,
    SourceChange,
)
from bot.core.plaintext import MORE_TO_COME
from bot.core.ports import Announcement, AnnouncementEntry
from bot.core.wording import reply_words
from bot.platforms.slack.blocks import MAX_MESSAGE_CHARS, render_announcement
from bot.platforms.slack.messenger import SlackMessenger
from bot.platforms.slack.web_api import web_client
from bot.settings import BotSettings
from storage.chat_models import WithdrawnItem
from storage.errors import LeaseLost, ReaderKilled
from storage.models import Box, Channel, ChannelKey, PageImage, Platform

ADDRESS = {"channel": "C1", "ts": "17.1", "thread": "17.1", "key": "T1:C1:17.1"}
DIRECT = {"channel": "D1", "ts": "17.1", "thread": None, "key": "T1:D1:17.1"}
PLACE = {"channel": "C1", "key": "T1:C1"}
ANSWER = Answer(AnswerState.GROUNDED, "Daily [1].")
ANNOUNCED = Announcement("b1", "1 PDF is new here.", (AnnouncementEntry("a.pdf: 2 pages"),))
SINCE = datetime(1970, 1, 1, 0, 5, tzinfo=UTC)


@dataclass
class WebApi:
    """A fake Web API: records posts with their metadata, and fails on demand."""

    url: str = ""
    # Faults to return in place of a reply; None cuts the connection after the call took effect.
    faults: list[web.Response | Literal[False] | None] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    posted: list[dict[str, Any]] = field(default_factory=list)
    # Timestamp of the first message.
    now: float = 18.0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return a fault, or do what the method says."""
        method = request.match_info["method"]
        arguments = await request.json() if request.content_type == "application/json" else {}
        arguments |= dict(request.query) | dict(await request.post())
        self.calls.append((method, arguments))
        fault = self.faults.pop(0) if self.faults else False
        if isinstance(fault, web.Response):
            return fault
        done = self._do(method, arguments)
        if fault is None and request.transport:
            request.transport.close()
        return web.json_response({"ok": True, **done})

    def _do(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if method == "chat.postMessage":
            self.posted.append(arguments | {"ts": str(self.now + len(self.posted) / 10)})
            return {"channel": arguments["channel"], "ts": self.posted[-1]["ts"]}
        if method == "chat.update":
            blocks = (
                json.loads(arguments["blocks"])
                if isinstance(arguments["blocks"], str)
                else arguments["blocks"]
            )
            self.posted = [
                one | {"blocks": blocks} if one["ts"] == arguments["ts"] else one for one in self.posted
            ]
        if method in ("chat.update", "chat.delete", "files.delete") or method.startswith("agents."):
            return {}
        if method == "files.getUploadURLExternal":
            file = f"F{sum(name == method for name, _ in self.calls)}"
            return {"file_id": file, "upload_url": f"{self.url}upload"}
        if method == "upload":
            return {}
        if method == "files.completeUploadExternal":
            return {"files": json.loads(arguments["files"])}
        return self._page(arguments, newest_first=method == "conversations.history")

    def _page(self, arguments: dict[str, Any], *, newest_first: bool) -> dict[str, Any]:
        """Return a page of the messages newer than ``oldest``, with the cursor of the next page."""
        if arguments.get("inclusive"):
            return {"messages": [one for one in self.posted if one["ts"] == arguments["latest"]]}
        read = [_as_read(one) for one in self.posted if float(one["ts"]) > float(arguments["oldest"])]
        start = int(arguments.get("cursor") or 0)
        end = start + min(int(arguments["limit"]), 200)
        messages = (read[::-1] if newest_first else read)[start:end]
        return {
            "messages": messages,
            "response_metadata": {"next_cursor": str(end) if end < len(read) else ""},
        }

    def chat(self, count: int) -> None:
        """Add ``count`` messages by other people."""
        self.posted += [{"ts": f"{19 + place}.0"} for place in range(count)]


def _as_read(message: dict[str, Any]) -> dict[str, Any]:
    metadata = message.get("metadata")
    return {"ts": message["ts"], "metadata": json.loads(metadata) if isinstance(metadata, str) else metadata}


def slow_down(seconds: str) -> web.Response:
    """Return Slack's rate-limit response."""
    return web.json_response(
        {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": seconds}
    )


@pytest.fixture
async def api() -> AsyncIterator[WebApi]:
    """Yield the fake Web API on loopback."""
    api = WebApi()
    async with slack_api(api.handle) as api.url:
        yield api


@pytest.fixture
def messenger(api: WebApi) -> SlackMessenger:
    """Return a messenger that posts there."""
    return SlackMessenger(web_client("xoxb-test", api.url), BotSettings())


async def test_a_placeholder_is_posted_without_previews_or_mentions(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """The placeholder is posted in the thread, with its question's key as metadata."""
    assert await messenger.post_placeholder(ADDRESS, Language.ENGLISH) == {"channel": "C1", "ts": "18.0"}
    ((method, sent),) = api.calls
    assert (method, sent["thread_ts"], sent["parse"]) == ("chat.postMessage", "17.1", "none")
    assert [
        str(sent[name]).lower() in {"false", "0"} for name in ("unfurl_links", "unfurl_media", "link_names")
    ]
    await messenger.post_placeholder(ADDRESS, Language.GERMAN, queued="Others first.")
    assert [call["text"] for _, call in api.calls] == ["Searching…", "Others first."]
    assert _as_read(sent | {"ts": ""})["metadata"]["event_payload"] == {"message_key": "T1:C1:17.1"}


async def test_a_draft_updates_the_placeholder_and_keeps_its_metadata(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """The draft is escaped, without [n] that have no target yet; it is found after a crash."""
    await messenger.show_partial(
        ADDRESS, {"channel": "C1", "ts": "18.0"}, "Daily <@U1> [1]. Not [2024] [12]."
    )
    ((method, sent),) = api.calls
    assert (method, sent["ts"], sent["parse"]) == ("chat.update", "18.0", "none")
    section, more = json.loads(sent["blocks"]) if isinstance(sent["blocks"], str) else sent["blocks"]
    assert section["text"]["text"] == "Daily &lt;@U1&gt;. Not [2024]."
    assert more["elements"][0]["text"] == MORE_TO_COME
    assert _as_read(sent)["metadata"]["event_payload"] == {"message_key": "T1:C1:17.1"}


async def test_a_draft_is_tried_once(api: WebApi, messenger: SlackMessenger) -> None:
    """A rate limit is not waited for; only the final answer is worth it."""
    api.faults = [slow_down("1")]
    with pytest.raises(DeliveryError):
        await messenger.show_partial(ADDRESS, {"channel": "C1", "ts": "18.0"}, "Daily [1].")
    assert len(api.calls) == 1


@pytest.mark.parametrize("address", [ADDRESS, DIRECT], ids=["thread", "direct message"])
async def test_a_placeholder_of_unclear_outcome_is_found_again(
    api: WebApi, messenger: SlackMessenger, address: dict[str, Any]
) -> None:
    """The connection broke after Slack had posted: find_placeholder returns the one message."""
    api.faults = [None]
    with pytest.raises(DeliveryUnclear):
        await messenger.post_placeholder(address, Language.ENGLISH)
    assert len(api.posted) == 1
    found = await messenger.find_placeholder(address)
    assert found is not None
    assert (found["channel"], found["ts"]) == (address["channel"], "18.0")


async def test_the_placeholder_of_another_question_is_not_ours(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """Only the message of the same question is reused."""
    await messenger.post_placeholder(ADDRESS | {"key": "T1:C1:16.0"}, Language.ENGLISH)
    assert await messenger.find_placeholder(ADDRESS) is None


@pytest.mark.parametrize("address", [ADDRESS, DIRECT], ids=["thread", "direct message"])
async def test_a_placeholder_is_found_among_any_number_of_messages(
    api: WebApi, messenger: SlackMessenger, address: dict[str, Any]
) -> None:
    """Shows that hundreds of messages before and after it cause no second placeholder."""
    api.chat(250)
    api.now = 400.0
    placed = await messenger.post_placeholder(address, Language.ENGLISH)
    api.posted += [{"ts": f"{500 + place}.0"} for place in range(450)]
    assert await messenger.find_placeholder(address) == placed


async def test_a_short_rate_limit_is_waited_for(api: WebApi, messenger: SlackMessenger) -> None:
    """A rate-limited call had no effect: retrying updates the message once."""
    api.faults = [slow_down("0")]
    await messenger.deliver(ADDRESS, {"channel": "C1", "ts": "18.0"}, ANSWER)
    assert [method for method, _ in api.calls] == ["chat.update", "chat.update"]


async def test_a_placeholder_waits_for_no_rate_limit(api: WebApi, messenger: SlackMessenger) -> None:
    """Placeholders of other channels, which Slack may accept, are queued behind it."""
    api.faults = [slow_down("1")]
    with pytest.raises(DeliveryError) as caught:
        await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert (caught.value.retry_after, len(api.calls), api.posted) == (1, 1, [])


@pytest.mark.parametrize("faults", [["120"], ["0", "0", "0"]], ids=["too long", "too often"])
async def test_a_long_rate_limit_goes_back_to_the_outbox(
    api: WebApi, messenger: SlackMessenger, faults: list[str]
) -> None:
    """Waits are bounded; Retry-After is handed on to the outbox."""
    api.faults = [slow_down(seconds) for seconds in faults]
    with pytest.raises(DeliveryError) as caught:
        await messenger.deliver(ADDRESS, {"channel": "C1", "ts": "18.0"}, ANSWER)
    assert (caught.value.retry_after, len(api.calls)) == (float(faults[-1]), len(faults))


async def test_a_server_error_is_unclear_and_not_retried(api: WebApi, messenger: SlackMessenger) -> None:
    """A 503 does not tell if the message was posted."""
    api.faults = [web.Response(status=503, text="upstream")]
    with pytest.raises(DeliveryUnclear):
        await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert len(api.calls) == 1


async def test_a_refusal_is_no_unclear_outcome(api: WebApi, messenger: SlackMessenger) -> None:
    """After not_in_channel it is certain that nothing was posted."""
    api.faults = [web.json_response({"ok": False, "error": "not_in_channel"})]
    with pytest.raises(DeliveryError, match="not_in_channel") as caught:
        await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    assert not isinstance(caught.value, DeliveryUnclear)


async def test_an_unreachable_slack_is_no_unclear_outcome() -> None:
    """A refused connection means that nothing was posted."""
    with pytest.raises(DeliveryError) as caught:
        await SlackMessenger(
            web_client("xoxb-test", "http://127.0.0.1:9/api/"), BotSettings()
        ).post_placeholder(ADDRESS, Language.ENGLISH)
    assert not isinstance(caught.value, DeliveryUnclear)


async def test_delivering_twice_writes_the_same_message(api: WebApi, messenger: SlackMessenger) -> None:
    """A repeated update makes no second message and keeps the metadata."""
    message = await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    await messenger.deliver(ADDRESS, message, ANSWER)
    await messenger.deliver(ADDRESS, message, ANSWER)
    assert [method for method, _ in api.calls] == ["chat.postMessage", "chat.update", "chat.update"]
    assert api.calls[1] == api.calls[2]
    assert "T1:C1:17.1" in str(api.calls[1][1]["metadata"])


PNG = b"\x89PNG a picture"
FIGURES = tuple(
    AnswerFigure(
        "a.pdf", page, f"Chart {page}", Box(0, 0, 1, 1), f"https://x/v/{page}", f"https://x/f/{page}"
    )
    for page in (1, 2)
)
ILLUSTRATED = replace(ANSWER, figures=FIGURES)
MESSAGE_OF = {"channel": "C1", "ts": "18.0"}
UPLOAD = ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]


async def draw(figure: AnswerFigure) -> PageImage:
    """Return an image of each figure except on page 9, which is damaged."""
    if figure.page == 9:
        raise ReaderKilled("drawing the page broke off")
    return PageImage(PNG, "image/png")


async def hold() -> None:
    """Accept: the lease is still ours."""


def pictures(sent: dict[str, Any]) -> list[str]:
    """Return the ids of the files that an update shows."""
    blocks = sent["blocks"] if isinstance(sent["blocks"], list) else json.loads(sent["blocks"])
    return [block["slack_file"]["id"] for block in blocks if block["type"] == "image"]


@pytest.fixture
def illustrator(api: WebApi) -> SlackMessenger:
    """Return a messenger that uploads figures there."""
    return SlackMessenger(web_client("xoxb-test", api.url), BotSettings(), draw=draw)


async def test_figures_are_uploaded_unshared_and_shown_in_the_answer(
    api: WebApi, illustrator: SlackMessenger
) -> None:
    """The files name no channel, so nothing is posted; each is rendered once, however often it is sent."""
    await illustrator.deliver(ADDRESS, MESSAGE_OF, ILLUSTRATED)
    for _ in range(2):
        await illustrator.attach_figures(ADDRESS, MESSAGE_OF, ILLUSTRATED, hold)
    methods = [method for method, _ in api.calls]
    assert methods == ["chat.update", *UPLOAD, *UPLOAD, "chat.update", "chat.update"]
    assert pictures(api.calls[0][1]) == []
    shown = [pictures(sent) for _, sent in api.calls[-2:]]
    assert shown == [["F1", "F2"]] * 2
    asked, _, completed = (sent for _, sent in api.calls[1:4])
    assert (asked["alt_txt"], int(asked["length"])) == ("Chart 1", len(PNG))
    assert not {"channel_id", "channels", "thread_ts", "initial_comment"} & completed.keys()
    assert api.posted == []


async def test_a_long_caption_costs_no_picture(api: WebApi, illustrator: SlackMessenger) -> None:
    """Slack refuses alt texts over 1000 characters."""
    long = replace(ILLUSTRATED, figures=(replace(FIGURES[0], caption="A long caption " * 200),))
    await illustrator.attach_figures(ADDRESS, MESSAGE_OF, long, hold)
    assert 900 < len(api.calls[0][1]["alt_txt"]) <= 1000
    assert pictures(api.calls[-1][1]) == ["F1"]


async def test_a_file_that_slack_is_processing_is_shown_on_retry(
    api: WebApi, illustrator: SlackMessenger
) -> None:
    """Slack refuses blocks with such files: the text stays, and a retry adds the figures."""
    await illustrator.deliver(ADDRESS, MESSAGE_OF, ILLUSTRATED)
    api.faults = [*[False] * 6, *(refused("invalid_blocks") for _ in range(2))]
    await illustrator.attach_figures(ADDRESS, MESSAGE_OF, ILLUSTRATED, hold)
    assert [method for method, _ in api.calls[-3:]] == ["chat.update"] * 3
    assert pictures(api.calls[-1][1]) == ["F1", "F2"]


def refused(error: str) -> web.Response:
    """Return a Slack error reply, which has status 200."""
    return web.json_response({"ok": False, "error": error})


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        *((step, lambda: None) for step in range(3)),
        *((step, lambda: web.Response(status=503, text="upstream")) for step in range(3)),
        *((step, lambda: slow_down("30")) for step in range(3)),
        (0, lambda: refused("missing_scope")),
        (2, lambda: refused("file_not_found")),
    ],
)
async def test_a_failed_upload_omits_only_its_figure(
    api: WebApi, illustrator: SlackMessenger, step: int, fault: Callable[[], web.Response | None]
) -> None:
    """The other figure is shown for a failure at any step, and the answer was posted before."""
    api.faults = [*[False] * step, fault()]
    await illustrator.attach_figures(ADDRESS, MESSAGE_OF, ILLUSTRATED, hold)
    assert api.calls[-1][0] == "chat.update"
    assert len(pictures(api.calls[-1][1])) == 1


async def test_a_figure_that_cannot_be_rendered_is_only_a_button(
    api: WebApi, illustrator: SlackMessenger
) -> None:
    """A damaged page costs only its figure; without any figure the answer is not updated."""
    damaged = replace(FIGURES[0], page=9)
    await illustrator.attach_figures(ADDRESS, MESSAGE_OF, replace(ANSWER, figures=(damaged,)), hold)
    assert api.calls == []
    await illustrator.attach_figures(
        ADDRESS, MESSAGE_OF, replace(ANSWER, figures=(damaged, *FIGURES[1:])), hold
    )
    assert len(pictures(api.calls[-1][1])) == 1


async def test_a_private_answer_uploads_nothing(api: WebApi, illustrator: SlackMessenger) -> None:
    """Figures stay links, because other people could see an uploaded file."""
    private = {**ADDRESS, "response_url": f"{api.url}reply"}
    await illustrator.attach_figures(private, {"is_private": True}, ILLUSTRATED, hold)
    assert api.calls == []


async def test_figures_are_attached_only_while_the_lease_is_held(
    api: WebApi, illustrator: SlackMessenger
) -> None:
    """The question was edited during the upload: its new answer is not overwritten by the old one."""

    async def lost() -> None:
        raise LeaseLost("another worker has it")

    with pytest.raises(LeaseLost):
        await illustrator.attach_figures(ADDRESS, MESSAGE_OF, ILLUSTRATED, lost)
    assert "chat.update" not in {method for method, _ in api.calls}


GONE = WithdrawnItem(ADDRESS, {"channel": "C1", "ts": "18.0"}, is_posting=False)


async def test_the_answer_to_a_deleted_question_is_deleted(api: WebApi, messenger: SlackMessenger) -> None:
    """Covers a placeholder whose post was unclear; one that was never posted needs no deletion."""
    await messenger.delete(GONE, take_any)
    assert api.calls == [("chat.delete", {"channel": "C1", "ts": "18.0"})]
    await messenger.delete(WithdrawnItem(ADDRESS, None, is_posting=False), take_any)
    await messenger.post_placeholder(ADDRESS, Language.ENGLISH)
    await messenger.delete(WithdrawnItem(ADDRESS, None, is_posting=True), take_any)
    assert [method for method, _ in api.calls[1:]] == [
        "chat.postMessage",
        "conversations.replies",
        "chat.delete",
    ]


@pytest.mark.parametrize(("address", "read"), [(ADDRESS, "replies"), (DIRECT, "history")])
async def test_the_figures_of_a_deleted_answer_are_deleted_too(
    api: WebApi, illustrator: SlackMessenger, address: dict[str, Any], read: str
) -> None:
    """File ids are read from the message, so that they survive a restart."""
    message = await illustrator.post_placeholder(address, Language.ENGLISH)
    await illustrator.deliver(address, message, ILLUSTRATED)
    await illustrator.attach_figures(address, message, ILLUSTRATED, hold)
    restarted = SlackMessenger(web_client("xoxb-test", api.url), BotSettings(), draw=draw)
    before = len(api.calls)
    await restarted.delete(WithdrawnItem(address, message, is_posting=False), take_any)
    asked = [(method, sent.get("file")) for method, sent in api.calls[before:]]
    assert asked[:2] == [(f"conversations.{read}", None), ("chat.delete", None)]
    assert asked[2:4] == [("files.delete", "F1"), ("files.delete", "F2")]


@pytest.mark.parametrize("step", [0, 2])
async def test_undeletable_figures_do_not_keep_the_answer(
    api: WebApi, illustrator: SlackMessenger, step: int
) -> None:
    """The message is deleted even if its files cannot be listed or deleted."""
    message = await illustrator.post_placeholder(ADDRESS, Language.ENGLISH)
    await illustrator.deliver(ADDRESS, message, ILLUSTRATED)
    await illustrator.attach_figures(ADDRESS, message, ILLUSTRATED, hold)
    api.faults = [*[False] * step, refused("not_allowed")]
    await illustrator.delete(WithdrawnItem(ADDRESS, message, is_posting=False), take_any)
    methods = [method for method, _ in api.calls]
    assert "chat.delete" in methods
    assert methods.count("files.delete") == (2 if step else 0)


async def test_an_unclear_deletion_is_retried_and_a_refused_one_not(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """A message already deleted or not ours is no error. Other errors make Slack redeliver the event."""
    refusal = web.json_response({"ok": False, "error": "message_not_found"})
    api.faults = [refusal]
    await messenger.delete(GONE, take_any)
    for fault in (slow_down("1"), None, web.json_response({}, status=500)):
        api.faults = [fault]
        with pytest.raises(DeliveryError):
            await messenger.delete(GONE, take_any)


def test_an_announcement_goes_to_its_tenants_channel(
    messenger: SlackMessenger,
) -> None:
    """Shows that a channel without any message can get announcements."""
    tenant = ChannelKey(Platform("slack"), "T1", "C1").tenant
    assert messenger.announcement_address(Channel(1, tenant, Platform("slack"), "it", 1), None) == PLACE


async def test_only_the_unclear_announcement_itself_is_found_again(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """Shows that a lost post is identified by its metadata."""
    api.faults = [None]
    with pytest.raises(DeliveryUnclear):
        await messenger.announce(PLACE, ANNOUNCED)
    assert len(api.posted) == 1
    assert await messenger.has_announced(PLACE, "b1", SINCE)
    assert not await messenger.has_announced(PLACE, "b2", SINCE)


async def test_an_announcement_is_found_despite_traffic_and_clock_skew(
    api: WebApi, messenger: SlackMessenger
) -> None:
    """Shows that neither 1,300 newer messages nor four minutes of clock skew cause a duplicate."""
    api.now = (SINCE - timedelta(minutes=4)).timestamp()
    await messenger.announce(PLACE, ANNOUNCED)
    api.posted += [{"ts": f"{1000 + place}.0"} for place in range(1300)]
    assert await messenger.has_announced(PLACE, "b1", SINCE)


async def test_an_upload_announcement_is_posted_in_its_thread(api: WebApi, messenger: SlackMessenger) -> None:
    """Posts and searches use the thread; other announcements start a thread of their own."""
    below = PLACE | {"below": {"channel": "C1", "thread": "17.1"}}
    await messenger.announce(below, ANNOUNCED)
    assert await messenger.has_announced(below, "b1", SINCE)
    (posting, post), (searching, search) = api.calls
    assert (posting, post["thread_ts"]) == ("chat.postMessage", "17.1")
    assert (searching, search["ts"]) == ("conversations.replies", "17.1")
    await messenger.announce(PLACE, ANNOUNCED)
    assert "thread_ts" not in api.calls[-1][1]


async def test_an_upload_gets_a_placeholder_and_no_stream(api: WebApi) -> None:
    """Shows the placeholder of an upload that starts a thread, with a model configured."""
    messenger = SlackMessenger(web_client("xoxb-test", api.url), BotSettings(openai_base_url="http://m"))
    address = {"channel": "C1", "ts": "17.1", "thread": "17.1", "key": "k", "upload": {"id": "F1"}}
    who = {"user": "U1", "team": "T1", "bot": "U2"}
    await messenger.post_placeholder(address | who, Language.GERMAN)
    assert [method for method, _ in api.calls] == ["chat.postMessage"]
    assert api.posted[0]["text"] == reply_words(Language.GERMAN).fetching


@pytest.mark.parametrize("error", ["not_in_channel", "channel_not_found", "is_archived"])
async def test_a_channel_without_the_bot_is_closed(
    api: WebApi, messenger: SlackMessenger, error: str
) -> None:
    """Shows that a permanent refusal is distinguished from a temporary one."""
    api.faults = [web.json_response({"ok": False, "error": error})]
    with pytest.raises(ChannelClosed):
        await messenger.announce(PLACE, ANNOUNCED)


def test_an_announcement_is_escaped_and_within_slacks_limits() -> None:
    """Shows that document names yield no mention, link or markup, and that all buttons are ours."""
    evil = "<!channel> <https://evil.example|here> & www.evil.example"
    entries = tuple(AnnouncementEntry(evil * 9, (evil * 9,) * 3) for _ in range(5))
    source = CitedPage((), evil, evil, "https://footnote.example/v/1")
    shown = render_announcement(Announcement("b1", "5 PDFs", entries, ("and 37 more",), (source,) * 5))
    words = json.dumps([shown.text, shown.blocks], ensure_ascii=False)
    assert "<!channel>" not in words
    assert "<https" not in words
    assert all(block["text"]["verbatim"] for block in shown.blocks if block["type"] == "section")
    assert len(json.dumps(shown.blocks, ensure_ascii=False)) <= MAX_MESSAGE_CHARS + 1000
    urls = [one["url"] for block in shown.blocks for one in block.get("elements", ())]
    assert urls == ["https://footnote.example/v/1"] * 5


async def test_source_changes_update_the_answer(api: WebApi, messenger: SlackMessenger) -> None:
    """Shows one chat.update and no post; a message that is gone raises another error."""
    page = CitedPage((1,), "p. 5 · B", "Page 5", "https://f.example/v/new")
    await messenger.revise(ADDRESS, {"channel": "C1", "ts": "18.0"}, ANSWER, [SourceChange("Newer:", page)])
    ((method, sent),) = api.calls
    assert (method, sent["ts"], api.posted) == ("chat.update", "18.0", [])
    assert sent["metadata"]["event_payload"] == {"message_key": ADDRESS["key"]}
    assert "https://f.example/v/new" in json.dumps(sent["blocks"])
    private = ADDRESS | {"response_url": "https://hooks.slack.example/x", "user": "U1"}
    for address in (ADDRESS, private):
        api.faults = [web.json_response({"ok": False, "error": "message_not_found"})]
        with pytest.raises(ChannelClosed):
            await messenger.revise(address, {"channel": "C1", "ts": "18.0"}, ANSWER, [])
    assert len(api.calls) == 2
    api.faults = [slow_down("7")]
    with pytest.raises(DeliveryError) as refused:
        await messenger.revise(ADDRESS, {"channel": "C1", "ts": "18.0"}, ANSWER, [])
    assert refused.value.retry_after == 7


async def test_source_changes_leave_the_figures_in_place(api: WebApi, illustrator: SlackMessenger) -> None:
    """Shows the line above the answer and all uploaded files still in place."""
    message = await illustrator.post_placeholder(ADDRESS, Language.ENGLISH)
    await illustrator.deliver(ADDRESS, message, ILLUSTRATED)
    await illustrator.attach_figures(ADDRESS, message, ILLUSTRATED, hold)
    before = [block for block in api.posted[0]["blocks"] if block["type"] == "image"]
    await illustrator.revise(ADDRESS, message, ILLUSTRATED, [SourceChange("Newer:", None)])
    shown = api.posted[0]["blocks"]
    assert [block for block in shown if block["type"] == "image"] == before != []
    assert "Newer:" in json.dumps(shown)


async def test_an_erased_answer_is_deleted_with_its_figures(api: WebApi, illustrator: SlackMessenger) -> None:
    """Text, buttons and uploaded files are deleted; a private answer cannot be reached."""
    message = await illustrator.post_placeholder(ADDRESS, Language.ENGLISH)
    await illustrator.deliver(ADDRESS, message, ILLUSTRATED)
    await illustrator.attach_figures(ADDRESS, message, ILLUSTRATED, hold)
    await illustrator.replace_erased(ADDRESS, message, Answer(AnswerState.CHAT, "Removed."))
    (posted,) = api.posted
    assert not [block for block in posted["blocks"] if block["type"] in ("image", "actions")]
    assert [sent["text"] for method, sent in api.calls if method == "chat.update"][-1] == "Removed."
    assert "files.delete" in [method for method, _ in api.calls]
    private = ADDRESS | {"response_url": "https://hooks.slack.example/x", "user": "U1"}
    with pytest.raises(ChannelClosed):
        await illustrator.replace_erased(private, message, Answer(AnswerState.CHAT, "Removed."))
