"""Counting of opened sources: which requests count as a person, and when counts are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, make_mocked_request
from fakes.web_house import House, make_pdf
from harness.tables import for_each
from harness.waiting import PATIENCE
from sqlalchemy import select, update
from sqlmodel import col

from bot.web.source_openings import SourceOpenings, is_person
from storage.chat.citations import Citations
from storage.clock import utc_now
from storage.errors import DatabaseUnavailable
from storage.models import CitationRecord
from storage.sql.tables import CitationRow, SourceOpeningRow

FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
CLICK = FIREFOX | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"}
REQUEST = make_mocked_request("GET", "/v/x", headers=CLICK)
CUBOT = "Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36"


@for_each(
    ("is_counted", "method", "headers"),
    [
        (True, "GET", CLICK),
        (True, "GET", FIREFOX),  # browsers send no Sec-Fetch headers over plain HTTP
        (True, "GET", CLICK | {"User-Agent": CUBOT}),
        (True, "GET", CLICK | {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"}),
        (False, "HEAD", CLICK),
        (False, "GET", CLICK | {"Sec-Fetch-Site": "same-origin"}),  # from one quote to the next
        (False, "GET", CLICK | {"Sec-Purpose": "prefetch;prerender"}),
        (False, "GET", CLICK | {"X-Moz": "prefetch"}),
        (False, "GET", CLICK | {"Sec-Fetch-Mode": "no-cors"}),
        (False, "GET", {"User-Agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"}),
        (False, "GET", {"User-Agent": "Mozilla/5.0 (Windows NT 6.1) SkypeUriPreview Preview/0.5"}),
        (False, "GET", {"User-Agent": "Mozilla/5.0 (compatible; bingbot/2.0)"}),
        (False, "GET", {"User-Agent": "curl/8.5"}),
        (False, "GET", {}),
    ],
)
def test_only_people_open_sources(is_counted: bool, method: str, headers: dict[str, str]) -> None:
    """Covers browser navigation from elsewhere, and the many clients that prefetch or scan links."""
    assert is_person(make_mocked_request(method, "/v/x", headers=headers)) is is_counted


@pytest.fixture
async def cited(house: House) -> tuple[CitationRecord, str]:
    """Return a quote of an answer, and the path of its link."""
    channel = await house.channel("alpha")
    backup = await house.shelve(channel, "backup.pdf", make_pdf([["Nightly backups"]]))
    (record,) = await house.cite_answer(channel, (backup, 1, "backups"))
    return record, house.links.viewer_path(house.links.page_url(channel, record))


async def openings(house: House) -> list[tuple[int, int]]:
    """Return (citation, number of openings today)."""
    query = select(col(SourceOpeningRow.citation_id), col(SourceOpeningRow.count)).where(
        col(SourceOpeningRow.day) == utc_now().date()
    )
    async with house.database.snapshot() as session:
        return [(citation, count) for citation, count in await session.execute(query)]


async def test_openings_are_flushed_and_deleted_with_their_citation(
    client: TestClient, house: House, cited: tuple[CitationRecord, str]
) -> None:
    """Shows that page turns, images, HEAD requests and forged links do not count."""
    record, path = cited
    for _ in range(2):
        assert (await client.get(path, headers=CLICK)).status == 200
    await client.get(f"{path}/1", headers=CLICK)
    await client.get(f"{path}/p/1@1x", headers=CLICK)
    await client.head(path, headers=CLICK)
    assert (await client.get(f"{path}x", headers=CLICK)).status == 404
    await client.close()
    assert await openings(house) == [(record.id, 2)]
    async with house.database.transaction() as session:
        old = utc_now() - timedelta(days=31)
        await session.execute(update(CitationRow).values(created_at=old))
    await house.stores.retention.delete_expired()
    assert await openings(house) == []


@asynccontextmanager
async def counting(citations: Citations) -> AsyncIterator[SourceOpenings]:
    """Count openings into ``citations``, flushed often and once at the end."""
    counted = SourceOpenings(citations, flush_seconds=0.02)
    async with asynccontextmanager(counted.cleanup_context)(web.Application()):
        yield counted


async def test_openings_that_cannot_be_written_are_retried(
    house: House, cited: tuple[CitationRecord, str]
) -> None:
    """Shows that with the database down no opening is lost and no page fails."""
    record, _ = cited
    failures = [DatabaseUnavailable("away")]

    class FailingCitations(Citations):
        async def count_openings(self, openings: Mapping[tuple[int, date], int]) -> None:
            if failures:
                raise failures.pop()
            await super().count_openings(openings)

    async with counting(FailingCitations(house.database)) as counted:
        counted.record_opening(REQUEST, record)
        async with asyncio.timeout(PATIENCE):
            while not await openings(house):
                await asyncio.sleep(0.01)
        assert failures == []
        counted.record_opening(REQUEST, record)
    assert await openings(house) == [(record.id, 2)]


async def test_a_write_in_progress_at_shutdown_completes(
    house: House, cited: tuple[CitationRecord, str]
) -> None:
    """Shows that shutdown waits for the write, since a cancelled one would lose the opening."""
    record, _ = cited
    has_begun = asyncio.Event()

    class SlowCitations(Citations):
        async def count_openings(self, openings: Mapping[tuple[int, date], int]) -> None:
            has_begun.set()
            await asyncio.sleep(0.1)
            await super().count_openings(openings)

    async with counting(SlowCitations(house.database)) as counted:
        counted.record_opening(REQUEST, record)
        await has_begun.wait()
    assert await openings(house) == [(record.id, 1)]
