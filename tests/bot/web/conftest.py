"""Fixtures for the web server: an empty home with its stores, and clients of a server on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fakes.web_house import CONSOLE_SECRET, SIGNED_IN, House, Visit
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from playwright.async_api import Page

from bot.platforms.registry import renewal_urls
from bot.platforms.slack.platform import SLACK_PLATFORM
from bot.settings import BotSettings, Settings
from bot.sign_in_settings import SignInSettings
from bot.web.app import build_web, make_runner
from bot.web.connections import ConnectionLimits
from bot.web.middleware import CountRequest
from bot.web.readiness import Readiness
from ingestion.settings import IngestionSettings
from storage.errors import IndexUnavailable
from storage.settings import StorageSettings
from storage.sql.database import Database


class Served(TestServer):
    """The application on a free port, run as in the service."""

    async def _make_runner(self, **options: object) -> web.AppRunner:
        return make_runner(self.app, ConnectionLimits(512, 256))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Yield an empty home with its stores."""
    async with AsyncExitStack() as stack:
        database = await Database.open(make_sqlite(tmp_path / "home"))
        stack.push_async_callback(database.aclose)
        renderer = LastingPdf(StorageSettings(home=tmp_path / "home"))
        yield House(tmp_path / "home", database, renderer)


@pytest.fixture
async def visit(house: House) -> AsyncIterator[Visit]:
    """Yield a function that starts the web server with settings given as keywords, and returns a client."""
    async with AsyncExitStack() as stack:

        async def start(
            *,
            not_ready: Sequence[str] = (),
            extra_routes: Sequence[web.RouteDef] = (),
            is_signed_in: bool = True,
            count_request: CountRequest | None = None,
            sign_in: SignInSettings | None = None,
            port: int | None = None,
            max_file_mb: int = 200,
            **settings: object,
        ) -> TestClient:
            async def works() -> bool:
                return True

            async def fails() -> bool:
                raise IndexUnavailable("http://admin:cast-iron@weaviate:8080 does not answer")

            chosen = BotSettings(**settings)
            checks = {name: fails if name in not_ready else works for name in ("sql", "index", "slack")}
            all_settings = Settings(
                StorageSettings(home=house.home, max_file_mb=max_file_mb),
                chosen,
                IngestionSettings(vision_url="https://models.example/v1"),
                sign_in,
            )
            app = build_web(
                answering=house.answering,
                trace=house.answering.trace,
                stores=house.stores,
                links=house.links,
                images=house.images(chosen.page_images_mb),
                settings=all_settings,
                readiness=Readiness(checks, reasons={"slack": SLACK_PLATFORM.not_ready}),
                api=house.api(all_settings),
                console_secret=CONSOLE_SECRET if chosen.serves_console(house.public_url) else None,
                extra_routes=extra_routes,
                renewal_urls=renewal_urls,
                count_request=count_request,
            )
            return await stack.enter_async_context(
                TestClient(Served(app, port=port), headers=SIGNED_IN if is_signed_in else None)
            )

        yield start


@pytest.fixture
async def client(visit: Visit) -> TestClient:
    """Return a client of a web server with default settings."""
    return await visit()


@pytest.fixture
async def page(visit: Visit, page: Page) -> Page:
    """Return the browser page; it is closed before the web server, which it keeps polling until then."""
    return page
