"""Files shared in Slack: which of them are added, and that the bot token goes to Slack's hosts only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fakes.slack_events import BOT, TEAM, envelope
from harness.tables import for_each
from samples.paper import pdf

from bot.core.errors import DeliveryError, FileUnavailable
from bot.core.ports import IncomingMessage
from bot.platforms.slack.web_api import web_client
from bot.platforms.slack.workspace.shared_files import SharedFiles, is_slacks, read_messages
from storage.chat_models import UPLOAD_KEY

CHANNEL, ALICE = "C0ITOPS01", "U0ALICE01"
POLICY = {"id": "F0POLICY1", "name": "Policy.pdf", "mimetype": "application/pdf"}
PLAN = {"id": "F0PLAN001", "name": "plan", "mimetype": "application/pdf"}
PICTURE = {"id": "F0PICTURE", "name": "cat.png", "mimetype": "image/png"}
FOREIGN = {"id": "F0FOREIGN", "file_access": "check_file_info"}
MENTION = f"<@{BOT}>"


def shared(text: str, *files: dict[str, Any], **event: Any) -> dict[str, Any]:
    """Return Slack's event for files that Alice posted in a channel."""
    said = {"type": "message", "subtype": "file_share", "user": ALICE, "channel": CHANNEL, "ts": "17.1"}
    return envelope("Ev1", **said | {"channel_type": "channel", "text": text, "files": list(files), **event})


def brief(messages: list[IncomingMessage]) -> list[tuple[str, str]]:
    """Return (file id or '', text) of each message."""
    return [(one.address.get(UPLOAD_KEY, {}).get("id", ""), one.text) for one in messages]


@for_each(
    ("event", "is_taken", "expected"),
    [
        (shared("", POLICY), True, [("F0POLICY1", "")]),
        (shared("", POLICY), False, []),
        (shared("here is the new one", POLICY, PICTURE, PLAN), True, [("F0POLICY1", ""), ("F0PLAN001", "")]),
        (shared("look!", PICTURE), True, []),
        (shared("", FOREIGN), True, [("F0FOREIGN", "")]),
        (shared(MENTION, POLICY), True, [("F0POLICY1", "")]),
        (shared(MENTION, POLICY), False, [("F0POLICY1", "")]),
        (shared(MENTION, PICTURE), True, [("F0PICTURE", "")]),
        (shared(MENTION, PICTURE), False, [("F0PICTURE", "")]),
        (
            shared(f"{MENTION} Who signs it?", PICTURE, POLICY, PLAN),
            True,
            [("F0PICTURE", ""), ("F0POLICY1", "Who signs it?"), ("F0PLAN001", "")],
        ),
        (shared(f"{MENTION} Who signs it?", POLICY), False, [("", "Who signs it?")]),
        (shared(f"{MENTION} Who signs it?", PICTURE), True, [("", "Who signs it?")]),
        (shared(f"{MENTION} please add this", PICTURE), True, [("F0PICTURE", "")]),
        (shared(f"{MENTION} please add this", PICTURE), False, [("F0PICTURE", "")]),
        (shared(f"{MENTION} Who signs it?", PICTURE), False, [("", "Who signs it?")]),
        (
            shared("Who signs it?", POLICY, channel_type="im"),
            False,
            [("", "Who signs it?")],
        ),
        (shared("Who signs it?", POLICY, channel_type="im"), True, [("F0POLICY1", "Who signs it?")]),
        (shared("", POLICY, channel_type="im"), False, [("F0POLICY1", "")]),
        (shared("", POLICY, thread_ts="16.1"), True, [("F0POLICY1", "")]),
        (shared("and this?", PICTURE, thread_ts="16.1"), True, [("", "and this?")]),
        (shared("", POLICY, bot_id="B1"), True, []),
        (shared("", {**POLICY, "id": "../x"}), True, []),
        (shared(MENTION, subtype=None), True, [("", "")]),
        (shared("hello", subtype=None), True, []),
    ],
)
def test_which_files_and_texts_of_a_message_are_accepted(
    event: dict[str, Any], is_taken: bool, expected: list[tuple[str, str]]
) -> None:
    """Covers mentions, bare posts, direct chats and threads, PDFs and images, uploads on and off."""
    assert brief(read_messages(event, lambda said: is_taken)) == expected


def test_a_repeated_message_has_the_same_uploads() -> None:
    """Shows equal keys for both events of a mention, the file's language, and the settings lookup."""
    asked: list[str] = []

    def takes(said: IncomingMessage) -> bool:
        asked.append(said.key.tenant)
        return True

    text = f"{MENTION} Hier ist die neue Richtlinie für die Sicherung der Daten."
    (first,) = read_messages(shared(text, POLICY), takes)
    (second,) = read_messages(
        shared(text, POLICY, type="app_mention", subtype=None, channel_type=None), takes
    )
    assert first.message_key == second.message_key == f"{TEAM}:{CHANNEL}:17.1:F0POLICY1"
    assert first.event_key == second.event_key == first.address["key"]
    assert first.address[UPLOAD_KEY] == {"id": "F0POLICY1", "name": "Policy.pdf", "language": "de"}
    assert (first.thread, first.address["thread"]) == ("17.1", "17.1")
    assert set(asked) == {f"sl_{TEAM}_{CHANNEL}"}


def test_a_file_without_a_mention_does_not_make_us_join_a_thread() -> None:
    """Shows that we ignore remarks below a bare file, even in a thread with our reply."""
    (bare,) = read_messages(shared("", POLICY), lambda said: True)
    (given,) = read_messages(shared(MENTION, POLICY), lambda said: True)
    assert (bare.thread, bare.address["thread"]) == (bare.message_key, "17.1")
    assert (given.thread, given.address["thread"]) == ("17.1", "17.1")


def test_a_file_of_another_organisation_is_left_alone() -> None:
    """Shows that an outsider of a shared channel adds no document."""
    event = {**shared(MENTION, POLICY, user_team="T0OTHER01"), "is_ext_shared_channel": True}
    assert read_messages(event, lambda said: True) == []


@for_each(
    ("url", "is_theirs"),
    [
        ("https://files.slack.com/files-pri/T1-F1/download/a.pdf", True),
        ("https://slack.com/a.pdf", True),
        ("https://files.slack-gov.com/a.pdf", True),
        ("https://files.slack.com:443/a.pdf", True),
        ("http://127.0.0.1:8080/files/a.pdf", True),
        ("http://files.slack.com/a.pdf", False),
        ("https://files.slack.com:8443/a.pdf", False),
        ("https://evilslack.com/a.pdf", False),
        ("https://slack.com.evil.example/a.pdf", False),
        ("https://user:password@files.slack.com/a.pdf", False),
        ("http://127.0.0.1:8081/files/a.pdf", False),
        ("https://127.0.0.1:8080/files/a.pdf", False),
        ("https://slack.com:x/a.pdf", False),
        ("https://\N{ACCOUNT OF}.slack.com/a.pdf", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_only_slacks_hosts_and_the_configured_one_get_the_token(url: str, is_theirs: bool) -> None:
    """Covers schemes, ports, look-alike hosts and credentials."""
    assert is_slacks(url, "http://127.0.0.1:8080/api/") is is_theirs


@dataclass
class Slack:
    """A fake Slack with one file, and a host of a third party."""

    info: dict[str, Any] = field(default_factory=dict)
    reply: dict[str, Any] | None = None
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    # Authorization headers of all file requests, on either host.
    tokens: list[str | None] = field(default_factory=list)
    url: str = ""
    elsewhere: str = ""

    async def api(self, request: web.Request) -> web.Response:
        assert request.path.endswith("/files.info")
        return web.json_response(self.reply or {"ok": True, "file": {**POLICY, "size": 7} | self.info})

    async def file(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization"))
        return web.Response(status=self.status, body=self.body, headers=self.headers)

    async def cut(self, request: web.Request) -> web.StreamResponse:
        """Send a file whose connection breaks in the middle."""
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"%PDF-")
        assert request.transport
        request.transport.close()
        return response

    async def fetch(self) -> tuple[str, bytes]:
        """Return (name, bytes) of the downloaded file."""
        files = SharedFiles(web_client("xoxb-secret", f"{self.url}/api/"), f"{self.url}/api/")
        async with files.open(
            {"channel": "C1", "key": "T1:C1:1", UPLOAD_KEY: {"id": POLICY["id"]}}
        ) as download:
            return download.name, b"".join([chunk async for chunk in download.chunks])


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    """Yield a fake Slack and the other host, both on loopback."""
    slack, app = Slack(), web.Application()
    app.add_routes([web.post("/api/{method}", slack.api), web.get("/api/{method}", slack.api)])
    app.add_routes([web.get("/file", slack.file), web.get("/cut", slack.cut)])
    other = web.Application()
    other.add_routes([web.get("/file", slack.file)])
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(TestServer(app))
        theirs = await stack.enter_async_context(TestServer(other))
        slack.url, slack.elsewhere = str(ours.make_url("")).rstrip("/"), str(theirs.make_url("/file"))
        slack.info = {"url_private_download": f"{slack.url}/file"}
        yield slack


async def test_a_file_is_downloaded_unchanged_with_the_bot_token(slack: Slack) -> None:
    """Shows name, bytes and token; compressed content is stored compressed."""
    slack.body = pdf("Backups run daily.")
    assert await slack.fetch() == ("Policy.pdf", slack.body)
    assert slack.tokens == ["Bearer xoxb-secret"]
    slack.headers = {"Content-Encoding": "gzip"}
    assert (await slack.fetch())[1] == slack.body


async def test_no_redirect_and_no_foreign_address_gets_the_token(slack: Slack) -> None:
    """Shows that another host receives no request, whatever Slack or a redirect says."""
    slack.info = {"url_private_download": slack.elsewhere}
    with pytest.raises(FileUnavailable):
        await slack.fetch()
    slack.info = {"url_private_download": f"{slack.url}/file"}
    slack.status, slack.headers = 302, {"Location": slack.elsewhere}
    with pytest.raises(FileUnavailable):
        await slack.fetch()
    assert slack.tokens == ["Bearer xoxb-secret"]
    slack.info = {}
    with pytest.raises(FileUnavailable):
        await slack.fetch()


async def test_a_file_that_slack_withholds_is_unavailable(slack: Slack) -> None:
    """Covers a deleted file, a missing scope, an HTTP error, and a login page."""
    slack.headers, slack.body = {"Content-Type": "text/html"}, b"<html>log in</html>"
    with pytest.raises(FileUnavailable, match="files:read"):
        await slack.fetch()
    slack.headers, slack.status = {}, 404
    with pytest.raises(FileUnavailable):
        await slack.fetch()
    for error in ("file_deleted", "missing_scope"):
        slack.reply = {"ok": False, "error": error}
        with pytest.raises(FileUnavailable, match=error):
            await slack.fetch()


async def test_interrupted_and_rate_limited_downloads_are_retried(slack: Slack) -> None:
    """Covers a server error, a rate limit, a cut connection and an unreachable host."""
    for status in (429, 503):
        slack.status = status
        with pytest.raises(DeliveryError):
            await slack.fetch()
    slack.info = {"url_private_download": f"{slack.url}/cut"}
    with pytest.raises(DeliveryError):
        await slack.fetch()
    away = SharedFiles(web_client("xoxb-secret", "http://127.0.0.1:9/api/"), "http://127.0.0.1:9/api/")
    with pytest.raises(DeliveryError):
        async with away.open({"channel": "C1", "key": "T1:C1:1", UPLOAD_KEY: {"id": "F1"}}):
            pass


async def test_each_file_is_stored_before_it_is_acknowledged(street: Any) -> None:
    """Shows that each upload of an event is stored once, and that Slack retries one that cannot be stored."""
    event = shared(MENTION, POLICY, PLAN)
    assert [await street.send(event), await street.send(event)] == [200, 200]
    assert sorted(street.inbox.kept) == [f"{TEAM}:{CHANNEL}:17.1:{one['id']}" for one in (PLAN, POLICY)]
    street.inbox.failure = RuntimeError("the database is gone")
    assert await street.send(shared(MENTION, POLICY, ts="18.1")) == 503
