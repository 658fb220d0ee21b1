"""Limits on connections and on the time a request may take to arrive, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from harness.waiting import PATIENCE, until_true

from bot.web.connections import ConnectionLimits, Runner, cap_to_file_descriptors
from bot.web.middleware import render_errors
from bot.web.templates import Assets, Templates

LIMITS = ConnectionLimits(
    total=8, per_address=6, head_seconds=1.5, body_seconds=1.5, idle_seconds=60, sweep_seconds=0.1
)
GET = b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"GET /ok HTTP/1.1\r\nHo"
HALF_BODY = b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf"
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# Writers opened by the running test.
_writers: list[asyncio.StreamWriter] = []


class Limited(TestServer):
    """An application with few connections and short timeouts."""

    async def _make_runner(self, **_: object) -> web.AppRunner:
        return Runner(self.app, {}, LIMITS)


@pytest.fixture
async def server() -> AsyncIterator[TestClient]:
    """Yield a server with routes that answer at once, read a body, or work until released."""
    free = asyncio.Event()

    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def read(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    async def work(request: web.Request) -> web.Response:
        await request.read()
        await free.wait()
        return web.Response(text="done")

    app = web.Application(middlewares=[render_errors(Templates(Assets(), None, 7), lambda *_: {})])
    app.add_routes([web.get("/ok", ok), web.post("/read", read), web.route("*", "/work", work)])
    async with TestClient(Limited(app)) as client:
        yield client
        free.set()
        for writer in _writers:
            writer.close()
        await asyncio.gather(*(one.wait_closed() for one in _writers), return_exceptions=True)
        _writers.clear()


async def opened(server: TestClient, sent: bytes = b"", address: str = "127.0.0.1") -> Opened:
    """Open a connection from one of this machine's addresses and send bytes on it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
    _writers.append(writer)
    writer.write(sent)
    await asyncio.sleep(0.01)
    return reader, writer


async def is_closed(connection: Opened, within: float) -> bool:
    """True if the server closes the connection in time without a response."""
    try:
        return not await asyncio.wait_for(connection[0].read(1), within)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


async def answers(server: TestClient, address: str) -> bool:
    """True if a complete request is answered."""
    reader, writer = await opened(server, GET, address)
    try:
        return (await asyncio.wait_for(reader.read(100), PATIENCE)).startswith(b"HTTP/1.1 200")
    except ConnectionError:
        return False
    finally:
        writer.close()


@pytest.mark.parametrize("half", [HALF, HALF_BODY, b"G"], ids=["head", "body", "letter"])
@pytest.mark.timeout(120)
async def test_an_incomplete_request_times_out(
    server: TestClient, half: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A log line per second reports their number; nothing counts as a failure."""
    caplog.set_level(logging.INFO)
    late = [await opened(server, half) for _ in range(3)]
    assert not await is_closed(late[0], 0.1)
    for one in late:
        assert await is_closed(one, PATIENCE)

    def told() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "bot.web.connections"]

    await until_true(told)
    assert len(told()) <= 3
    assert all(one.endswith("request timeout") for one in told())
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_a_slow_answer_is_not_a_slow_request(server: TestClient) -> None:
    """Shows that handlers may take any time, and that a body in several chunks is read."""
    working = await opened(server, GET.replace(b"/ok", b"/work"))
    posted = await opened(server, HALF_BODY.replace(b"/read", b"/work") + b"x" * 96)
    slow = await opened(server, HALF_BODY)
    await asyncio.sleep(0.2)
    slow[1].write(b"x" * 96)
    assert b"100" in await slow[0].read(500)
    assert not await is_closed(working, 2)
    assert not await is_closed(posted, 0.1)


async def test_a_slow_large_body_is_read_but_a_dripping_one_is_closed(server: TestClient) -> None:
    """Shows that a file over a slow line is read whole, and that occasional bytes keep no connection open."""
    large = HALF_BODY.replace(b": 100", b": 20000")
    flowing, dripping = await opened(server, large), await opened(server, large)
    for piece in [b"x" * 2000] * 9 + [b"x" * 1996]:
        await asyncio.sleep(0.25)
        flowing[1].write(piece)
        dripping[1].write(b"x")
    assert b"20000" in await asyncio.wait_for(flowing[0].read(500), PATIENCE)
    assert await is_closed(dripping, PATIENCE)


async def test_incomplete_requests_evict_only_their_own_address(server: TestClient) -> None:
    """A hundred from one address leave other connections open, and every complete request is answered."""
    kept, busy = await opened(server, GET, "127.0.0.2"), await opened(server, GET.replace(b"ok", b"work"))
    assert b"200" in await kept[0].read(500)
    halves = [await opened(server, HALF) for _ in range(100)]
    assert await answers(server, "127.0.0.1")
    assert await answers(server, "127.0.0.3")
    assert [await is_closed(one, PATIENCE) for one in halves[:90]] == [True] * 90
    kept[1].write(GET)
    assert b"200" in await asyncio.wait_for(kept[0].read(500), PATIENCE)
    assert not await is_closed(busy, 0.1)


async def test_incomplete_requests_from_many_addresses_block_no_one(server: TestClient) -> None:
    """Shows that the global limit closes the oldest connection without a complete request."""
    halves = [await opened(server, HALF, f"127.0.1.{number}") for number in range(1, 60)]
    assert await answers(server, "127.0.0.9")
    assert await is_closed(halves[0], 1)


async def test_a_new_connection_is_refused_while_all_are_busy(server: TestClient) -> None:
    """Shows that no request in progress is aborted for a new connection."""
    work = GET.replace(b"/ok", b"/work")
    busy = [await opened(server, work, f"127.0.2.{number}") for number in range(1, 9)]
    assert not await answers(server, "127.0.0.9")
    assert not await is_closed(busy[0], 0.1)


def test_the_limit_leaves_half_of_the_file_handles() -> None:
    """Shows that file handles remain for stored files and the database."""
    handles, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, most))
    try:
        assert (cap_to_file_descriptors(512), cap_to_file_descriptors(100)) == (150, 100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (handles, most))
