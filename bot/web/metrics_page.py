"""``/metrics`` for Prometheus: on the console's port for this machine, elsewhere only if configured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from bot.web.connections import ConnectionLimits, Runner
from bot.web.security import BASE_HEADERS, require_loopback
from storage.errors import SettingsError

RenderMetrics = Callable[[], Awaitable[bytes]]
# Text format written by prometheus-client.
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

# Scrapers keep one connection each.
LIMITS = ConnectionLimits(total=64, per_address=64)


def metrics_routes(render: RenderMetrics) -> list[web.RouteDef]:
    """Return the loopback-only route beside the console; it exposes no text, so it needs no secret."""

    async def send(request: web.Request) -> web.Response:
        require_loopback(request)
        return await _response(render)

    return [web.get("/metrics", send, name="metrics")]


@asynccontextmanager
async def serving_metrics(render: RenderMetrics, address: str | None) -> AsyncIterator[None]:
    """Serve only ``/metrics`` at ``host:port`` until the context ends; None: nowhere.

    Anyone who can reach that address may read it: it holds counts and no text.

    Raises:
        SettingsError: the address is unavailable.
    """
    if address is None:
        yield
        return

    async def send(_: web.Request) -> web.Response:
        return await _response(render)

    app = web.Application()
    app.add_routes([web.get("/metrics", send, name="metrics")])
    runner = Runner(app, BASE_HEADERS, LIMITS)
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
    headers = {**BASE_HEADERS, "Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    return web.Response(body=await render(), headers=headers)
