"""Files sent in personal chats of Teams: which of them are added, and which URLs are requested."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from harness.tables import for_each
from samples.paper import pdf

from bot.core.errors import DeliveryError, FileUnavailable
from bot.core.ports import IncomingMessage
from bot.platforms.teams.personal_files import FILE, TeamsFiles, is_local_file, is_sharepoints, read_messages
from storage.chat_models import UPLOAD_KEY

URL = "https://acme-my.sharepoint.com/personal/ann/_layouts/15/download.aspx?UniqueId=1&tempauth=abc%2Bd"


def attached(name: str, kind: str = "", id: str = "", url: str = URL) -> dict[str, Any]:
    """Return an attachment as Teams sends it to a bot."""
    content = {"downloadUrl": url, "uniqueId": id or name, "fileType": kind or name.rpartition(".")[2]}
    shown = {"contentUrl": "https://acme-my.sharepoint.com/x", "name": name, "content": content}
    return {"contentType": FILE, **shown}


POLICY, PLAN, PICTURE = attached("Policy.pdf"), attached("plan", kind="PDF"), attached("cat.png")
PLACE = {"service_url": "https://smba.example/", "conversation": "a:1"}
POLICY_FILE = {"media_type": "application/pdf", "name": "Policy.pdf"}


def sent(text: str, *attachments: Any, kind: str = "personal", **fields: Any) -> dict[str, Any]:
    """Return a message from Ann to the bot."""
    conversation = {"id": "a:1", "conversationType": kind, "tenantId": "t"}
    said = {"type": "message", "id": "17", "conversation": conversation, "text": text}
    return said | {"attachments": list(attachments), "serviceUrl": "https://smba.example/"} | fields


def brief(messages: list[IncomingMessage]) -> list[tuple[str, str]]:
    """Return (file name or '', text) of each message."""
    return [(one.address.get(UPLOAD_KEY, {}).get("name", ""), one.text) for one in messages]


HTML = {"contentType": "text/html", "content": "<p>Who signs it?</p>"}


@for_each(
    ("activity", "is_taken", "expected"),
    [
        (sent("", POLICY), True, [("Policy.pdf", "")]),
        (sent("", POLICY), False, [("Policy.pdf", "")]),
        (sent("Who signs it?", POLICY, PLAN, HTML), True, [("Policy.pdf", "Who signs it?"), ("plan", "")]),
        (sent("Who signs it?", POLICY), False, [("", "Who signs it?")]),
        (sent("", PICTURE), True, [("cat.png", "")]),
        (sent("Who signs it?", PICTURE), True, [("", "Who signs it?")]),
        (sent("please add this", PICTURE), True, [("cat.png", "")]),
        (sent("Who signs it?", PICTURE), False, [("", "Who signs it?")]),
        (sent("Who signs it?", HTML), True, [("", "Who signs it?")]),
        (sent("Who signs it?", 7, {"contentType": FILE}), True, [("", "Who signs it?")]),
        (sent("Who signs it?", POLICY, attachments="x"), True, [("", "Who signs it?")]),
        (sent("", POLICY, kind="groupChat"), True, []),
        (sent("", POLICY, type="messageUpdate"), True, []),
    ],
)
def test_which_files_and_texts_of_a_message_are_accepted(
    activity: dict[str, Any], is_taken: bool, expected: list[tuple[str, str]]
) -> None:
    """Covers PDFs by name and by type, images, malformed files, and chats where bots get no files."""
    assert brief(read_messages(activity, None, lambda said: is_taken)) == expected


def test_people_of_another_tenant_add_no_files() -> None:
    """Shows that files of a personal chat in another tenant are ignored."""
    assert brief(read_messages(sent("When?", POLICY), "ours", lambda said: True)) == [("", "When?")]


def test_a_redelivered_message_has_the_same_upload() -> None:
    """Shows the keys that deduplicate the upload, and its download URL."""
    (upload,) = read_messages(sent("", POLICY), None, lambda said: True)
    assert upload.event_key == upload.message_key == upload.address["key"] == "t:a:1:17:Policy.pdf"
    known = {"id": "Policy.pdf", "name": "Policy.pdf", "language": ""}
    assert upload.address[UPLOAD_KEY] == known | {"url": URL, "media_type": "application/pdf"}


@for_each(
    ("url", "is_theirs"),
    [
        (URL, True),
        ("https://acme.sharepoint.us/x", True),
        ("https://acme.sharepoint.com:443/x", True),
        ("https://ACME.SharePoint.com/x", True),
        ("http://acme.sharepoint.com/x", False),
        ("https://acme.sharepoint.com:8443/x", False),
        ("https://evilsharepoint.com/x", False),
        ("https://acme.sharepoint.com.evil.example/x", False),
        ("https://acme.sharepoint.com@169.254.169.254/x", False),
        ("https://169.254.169.254/x?acme.sharepoint.com", False),
        ("https://127.0.0.1\\.sharepoint.com/x", False),
        ("https://user:password@acme.sharepoint.com/x", False),
        ("https://acme.sharepoint.com:x/", False),
        ("https://büro.sharepoint.com/x", False),
        ("https://xn--a.sharepoint.com/x", False),
        ("https://\N{ACCOUNT OF}.sharepoint.com/x", False),
        ("file:///etc/passwd", False),
        ("//acme.sharepoint.com/x", False),
        ("", False),
    ],
)
def test_only_sharepoint_hosts_are_requested(url: str, is_theirs: bool) -> None:
    """Covers schemes, ports, look-alike hosts and credentials."""
    assert is_sharepoints(url) is is_theirs


@dataclass
class SharePoint:
    """A fake SharePoint host with one file."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    # (path, Authorization header) of each request.
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    async def file(self, request: web.Request) -> web.Response:
        self.asked.append((request.raw_path, request.headers.get("Authorization")))
        return web.Response(status=self.status, body=self.body, headers=self.headers)

    async def fetch(self) -> tuple[str, bytes]:
        """Return (name, bytes) of the downloaded file."""
        upload = POLICY_FILE | {"url": f"{self.url}/file?a=b%2Bc"}
        async with TeamsFiles(is_local_file).open(PLACE | {UPLOAD_KEY: upload}) as download:
            return download.name, b"".join([chunk async for chunk in download.chunks])


@pytest.fixture
async def host() -> AsyncIterator[SharePoint]:
    """Yield the host on loopback."""
    host, app = SharePoint(), web.Application()
    app.add_routes([web.get("/{name}", host.file)])
    async with TestServer(app) as server:
        host.url = str(server.make_url("")).rstrip("/")
        yield host


async def test_a_file_is_downloaded_by_its_signed_url_without_a_token(host: SharePoint) -> None:
    """Shows the bytes, and that the signed URL is requested without re-encoding."""
    host.body = pdf("Backups run daily.")
    assert await host.fetch() == ("Policy.pdf", host.body)
    assert host.asked == [("/file?a=b%2Bc", None)]


async def test_no_redirect_and_no_other_host_is_requested(host: SharePoint) -> None:
    """Shows that a redirect is a refusal, and that other hosts get no request."""
    host.status, host.headers = 302, {"Location": f"{host.url}/other"}
    with pytest.raises(FileUnavailable):
        await host.fetch()
    assert [path for path, _ in host.asked] == ["/file?a=b%2Bc"]
    for url in (f"{host.url}/file", "https://169.254.169.254/latest", "https://a..sharepoint.com/x", ""):
        with pytest.raises(FileUnavailable):
            async with TeamsFiles(is_sharepoints).open(PLACE | {UPLOAD_KEY: POLICY_FILE | {"url": url}}):
                pass
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    ("status", "fault"),
    [(404, FileUnavailable), (403, FileUnavailable), (429, DeliveryError), (503, DeliveryError)],
)
async def test_an_expired_url_fails_and_a_busy_host_is_retried(
    host: SharePoint, status: int, fault: type[Exception]
) -> None:
    """Covers expired URLs and a busy host."""
    host.status = status
    with pytest.raises(fault):
        await host.fetch()
