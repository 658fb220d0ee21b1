"""``/metrics`` for Prometheus: beside the console to this machine, elsewhere only where a setting says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from bot.web.connections import Runner
from bot.web.security import EVERYWHERE, require_loopback
from storage.errors import SettingsError

RenderMetrics = Callable[[], Awaitable[bytes]]
# Of the text format that prometheus-client writes.
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"


def metrics_routes(render: RenderMetrics) -> list[web.RouteDef]:
    """The route beside the console, for programs of this machine; as it holds no word, it wants no secret."""

    async def send(request: web.Request) -> web.Response:
        require_loopback(request)
        return await _response(render)

    return [web.get("/metrics", send, name="metrics")]


@asynccontextmanager
async def serving_metrics(render: RenderMetrics, address: str | None) -> AsyncIterator[None]:
    """Serve nothing but the page at ``host:port`` until the context ends; None: nowhere.

    Whoever reaches that address may read it: it holds counts, and no word of anybody.

    Raises:
        SettingsError: the address cannot be had.
    """
    if address is None:
        yield
        return

    async def send(_: web.Request) -> web.Response:
        return await _response(render)

    app = web.Application()
    app.add_routes([web.get("/metrics", send, name="metrics")])
    runner = Runner(app, EVERYWHERE)
    await runner.setup()
    host, _, port = address.rpartition(":")
    try:
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise SettingsError(
            f"FOOTNOTE_METRICS_LISTEN: cannot listen on {address}: {error.strerror}"
        ) from error
    try:
        yield
    finally:
        await runner.cleanup()


async def _response(render: RenderMetrics) -> web.Response:
    headers = {**EVERYWHERE, "Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    return web.Response(body=await render(), headers=headers)
