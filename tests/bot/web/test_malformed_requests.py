"""Malformed requests: our own 400 with our headers, and none of their bytes in response or log."""

from __future__ import annotations

import asyncio
import gzip
import logging
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Visit
from harness.tables import for_each

from bot.operations.metrics.service_metrics import ServiceMetrics
from bot.platforms.registry import SIGNED_ROUTES
from bot.web.security import BASE_HEADERS

# As long as a link's token.
TOKEN = "CANARY-" + "A" * 105
OWN = {"X-Footnote-Console": "1", "Content-Type": "application/json"}


async def sent_raw(client: TestClient, request: bytes) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of the response to bytes that no HTTP client would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.write(request)
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    "request_",
    [
        f"GET /v/{TOKEN} x HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
        f"GET /v/{TOKEN} HTTP/9.9\r\nHost: a\r\n\r\n".encode(),
        f"GET /v/{TOKEN}\xfc HTTP/1.1\r\nHost: a\r\n\r\n".encode("latin-1"),
        f"GET /v/{TOKEN}\x01 HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
        f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\x01\r\n\r\n".encode(),
        f"GET / HTTP/1.1\r\nHost: a\r\nX: {TOKEN * 90}\r\n\r\n".encode(),
        f"G{TOKEN}( / HTTP/1.1\r\n\r\n".encode(),
        f"POST /v/{TOKEN} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n".encode()
        + b"Transfer-Encoding: chunked\r\n\r\n",
        f"GET /v/{TOKEN}{'A' * 9000} HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    ],
    ids=[
        "blank",
        "version",
        "letter",
        "control byte",
        "header",
        "long header",
        "method",
        "smuggled",
        "long line",
    ],
)
async def test_malformed_requests_are_neither_echoed_nor_logged(
    client: TestClient, caplog: pytest.LogCaptureFixture, request_: bytes
) -> None:
    """The request line holds a live token and a header a key: neither appears in logs or responses."""
    caplog.set_level(logging.DEBUG)
    status, headers, body = await sent_raw(client, request_)
    assert status in (400, 404)
    assert BASE_HEADERS.items() <= headers.items()
    logged = "".join(f"{one.getMessage()} {one.exc_info} {one.args}" for one in caplog.records)
    assert "CANARY" not in body + str(headers) + logged + caplog.text
    assert "AAAA" not in body + caplog.text
    assert "Server" not in headers or "aiohttp" not in headers["Server"]


async def test_an_internal_server_error_reveals_nothing(
    visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows our error page, and a log line with the place, even if our middleware fails."""

    async def fail(request: web.Request) -> web.Response:
        raise RuntimeError("CANARY")

    client = await visit(extra_routes=[web.post("/x", fail, expect_handler=fail, name="x")])
    refused = await client.post("/x", headers={"Expect": "100-continue"})
    assert (refused.status, "CANARY" in await refused.text() + caplog.text) == (500, False)
    assert BASE_HEADERS.items() <= refused.headers.items()
    assert "request failed: RuntimeError" in caplog.text


async def test_an_unknown_expect_header_is_not_echoed(client: TestClient) -> None:
    """Shows that no header is echoed."""
    refused = await client.get("/healthz", headers={"Expect": TOKEN})
    assert (refused.status, await refused.text()) == (417, "417 Expectation Failed\n")


@pytest.mark.parametrize("path", ["/console/ask", "/console/feedback", "/console/why", "/console/forget"])
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"\x1f\x8bbroken", {"Content-Encoding": "gzip"}),
        (gzip.compress(b"{}" * 9000)[:40], {"Content-Encoding": "gzip"}),
        (b"broken", {"Content-Encoding": "deflate"}),
        (b"{}", {"Content-Type": "application/json; charset=klingon"}),
        (b"{}", {"Content-Type": "application/json; charset=hex"}),
        (b"\xff", {}),
        (b"[" * 50_000, {}),
        (b'"x"', {}),
        (b'{"channel": 1e999, "question": "x", "thread": "x"}', {}),
    ],
    ids=["gzip", "cut", "deflate", "charset", "codec", "bytes", "deep", "text", "number"],
)
async def test_a_malformed_body_is_no_server_error(
    client: TestClient,
    caplog: pytest.LogCaptureFixture,
    path: str,
    body: bytes,
    headers: dict[str, Any],
) -> None:
    """For any encoding, charset or shape: 4xx, never 500, and no traceback in the log."""
    answered = await client.post(path, data=body, headers=OWN | headers)
    assert answered.status in (400, 404)
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


async def test_out_of_range_values_are_no_server_error(
    client: TestClient, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers, timestamps and types out of range: 4xx, or treated as not given."""
    channel, id_ = await house.channel("hr"), "0" * 32
    whole = {"channel": channel.id, "question": id_, "thread": id_, "verdict": "bad", "language": "en"}
    for wrong in ({"channel": 2**31}, {"channel": 10**30}, {"channel": -1}, {"language": []}):
        for path in ("/console/ask", "/console/feedback", "/console/why", "/console/forget"):
            answered = await client.post(path, json=whole | wrong, headers=OWN)
            assert answered.status < 500, (path, wrong)
    for path in (
        f"/console/search?channel={'9' * 5000}",
        f"/console/conversations?channel={'9' * 5000}",
        f"/console/conversations/{channel.id}?before=0001-01-01T00:00:00%2B23:59",
        f"/console/conversations/{channel.id}?before=9999-12-31T23:59:59-23:59",
    ):
        assert (await client.get(path)).status < 500, path
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


async def test_nul_reaches_no_database(client: TestClient, house: House) -> None:
    """PostgreSQL stores no NUL in text: U+FFFD replaces it, as in chats."""
    channel = await house.channel("hr")
    question = {"channel": channel.id, "question": "a\0b"}
    assert (await client.post("/console/ask", json=question, headers=OWN)).status == 200
    form = {"Sec-Fetch-Site": "same-origin"}
    path = f"/console/search/{channel.id}?format=json"
    assert (await client.post(path, data={"question": "a\0b"}, headers=form)).status == 200
    assert [one.text for one in house.answering.asked] == ["a\ufffdb"] * 2


PART = b'--x\r\nContent-Disposition: form-data; name="place"\r\n'


@for_each(
    "body",
    [
        b"",
        b"--y\r\n",
        b"--x\r\n\r\nno end",
        b"--x\r\n\xff\r\n\r\nx\r\n--x--\r\n",
        b"--x\r\nno colon\r\n\r\nx\r\n--x--\r\n",
        PART + b"X: " + b"y" * 20_000 + b"\r\n\r\nx\r\n--x--\r\n",
        PART + b"Content-Transfer-Encoding: klingon\r\n\r\nx\r\n--x--\r\n",
        PART + b"Content-Encoding: klingon\r\n\r\nx\r\n--x--\r\n",
        PART + b"Content-Length: many\r\n\r\nx\r\n--x--\r\n",
        PART + b"Content-Type: multipart/mixed\r\n\r\nx\r\n--x--\r\n",
    ],
)
async def test_a_malformed_multipart_form_is_no_server_error(
    client: TestClient, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    """Each page that reads a form answers 4xx, or that it was empty; no traceback is logged."""
    form = {"Content-Type": "multipart/form-data; boundary=x", "Sec-Fetch-Site": "same-origin"}
    for path in ("/console/uploads", f"/console/uploads/held/{'0' * 32}"):
        answered = await client.post(path, data=body, headers=OWN | form)
        assert answered.status < 500, (path, body)
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


async def test_the_log_has_the_sent_status_and_the_route(
    visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    """A refusal is not logged as 500; requests that match no route are labelled so."""
    caplog.set_level(logging.INFO)

    async def refuse(_: web.Request) -> web.Response:
        raise web.HTTPUnsupportedMediaType

    counted: list[tuple[str, int]] = []
    client = await visit(
        extra_routes=[web.post("/slack/events", refuse, name="slack_events")],
        count_request=lambda name, status, _, is_forged: counted.append((name, status)),
    )
    for method, path in (
        ("POST", "/slack/events"),
        ("GET", "/nowhere"),
        ("PUT", "/healthz"),
        ("GET", "/v/x"),
    ):
        await client.request(method, path)
    lines = [one.getMessage().rsplit(" ", 2)[0] for one in caplog.records if one.name == "bot.web.middleware"]
    assert lines == ["POST slack_events 415", "GET unmatched 404", "PUT unmatched 405", "GET viewer 404"]
    assert counted == [("slack_events", 415), ("unmatched", 404), ("unmatched", 405), ("viewer", 404)]


async def test_forged_links_are_counted_on_every_route(visit: Visit) -> None:
    """Shows for each route below /v/ and /f/ that an unsigned link is refused and counted."""
    metrics = ServiceMetrics(SIGNED_ROUTES)
    client = await visit(count_request=metrics.count_request)
    routes = [
        (one.method, one.resource.canonical)
        for one in client.app.router.routes()
        if one.resource and one.resource.canonical.startswith(("/v/", "/f/")) and one.method != "HEAD"
    ]
    assert len(routes) >= 9
    for number, (method, path) in enumerate(routes, start=1):
        forged = path.format(token="forged", page="1", picture="1x")
        assert (await client.request(method, forged)).status == 404
        counted = metrics.registry.get_sample_value(
            "footnote_refused_signatures_total", {"channel_type": "link"}
        )
        assert counted == number, path
