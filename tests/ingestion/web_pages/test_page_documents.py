"""Approved web pages as documents of a hidden channel: searched, replaced, deleted and cited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.term_embedder import TermEmbedder
from fakes.web_site import WebSite
from harness.ingestion_home import Home, open_home
from harness.waiting import until
from sqlalchemy import update

from storage.chat.citations import Citations
from storage.clock import utc_now
from storage.errors import UnknownChannel
from storage.folders.folders import Folders
from storage.index.embedded.index import EmbeddedIndex
from storage.models import WEB_PAGES, CitedPlace, LivePublication, Rung
from storage.sql.tables import NoticeRow, WebPageRow
from storage.web_pages.page_store import WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

PAGE = (
    "<html><head><title>Deposits</title></head><body><main><h1>Tenancy deposits</h1><p>{}</p>"
    "<h2 id=scheme>Schemes</h2><p>There are three schemes that hold your money.</p></main>"
)
THIRTY = PAGE.format("A landlord must protect your deposit within 30 days of getting it.")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """An empty home."""
    async with open_home(tmp_path, TermEmbedder("terms"), EmbeddedIndex(tmp_path / "index", 10)) as one:
        yield one


async def renew(home: Home, site: WebSite, page: str | None) -> None:
    """Approve a page, or another one in its place, and fetch it."""
    if page is not None:
        site.pages["/a"] = page
    url = site.url("/a" if page is not None else "/other")
    (home.path / "web_sources.toml").write_text(
        f'[[domain]]\nname = "d"\nkeywords = ["deposit"]\nurls = ["{url}"]\n'
    )
    async with home.database.transaction() as session:
        await session.execute(update(WebPageRow).values(due_at=utc_now()))
    ingestion = home.ingestions[0] if home.ingestions else await home.serve(web_loopback=True)
    (domain,) = (await WebSourcesFile(home.path).current()).domains
    await ingestion.fetch_web_pages(domain)


async def live_page(home: Home, word: str) -> LivePublication:
    """Return the page that answers in full and is found by a word."""

    async def found() -> LivePublication | None:
        pages = await home.find(WEB_PAGES, word)
        return next((one for one in pages.values() if one.rung is Rung.FULL), None)

    return await until(found)


async def test_a_page_is_a_document_that_no_one_lists(home: Home, site: WebSite) -> None:
    """Shows its anchors, and that neither lists of channels nor of folders nor notices name it."""
    await renew(home, site, THIRTY)
    page = await live_page(home, "30")
    assert (page.file, page.title, page.pages) == (site.url("/a"), "Tenancy deposits", 1)
    assert (page.anchors, page.space) == (("", "scheme"), "terms")
    assert WEB_PAGES not in [one.name for one in await home.channels.all()]
    with pytest.raises(UnknownChannel):
        await home.channels.by_name(WEB_PAGES)
    with pytest.raises(UnknownChannel):
        await home.channels.get(page.channel_id)
    assert await Folders(home.database).status() == []
    assert await home.rows(NoticeRow) == []


async def test_a_page_removed_from_the_list_is_deleted(home: Home, site: WebSite) -> None:
    """Shows that no search finds it, and that it answers again once it is approved again."""
    await renew(home, site, THIRTY)
    await live_page(home, "30")
    await renew(home, site, None)
    assert await home.find(WEB_PAGES, "30") == {}
    assert {one.state for one in (await home.documents(WEB_PAGES)).values()} == {"deleted"}
    await renew(home, site, THIRTY)
    await live_page(home, "30")


async def test_a_quote_missing_from_its_page_is_reported(home: Home, site: WebSite) -> None:
    """Shows that admins are told once per cited version, and that quotes still there are no news."""
    await renew(home, site, THIRTY)
    page, store = await live_page(home, "30"), WebPageStore(home.database, home.files)
    lost, held = (
        "A landlord must protect your deposit within 30 days of getting it.",
        "There are three schemes",
    )
    housing = await home.channel("housing")
    shown = [CitedPlace(page.version_id, 1, quote) for quote in (lost, lost, held)]
    await Citations(home.database).add(housing.id, shown)
    assert await store.lost_quotes() == []
    for days in (14, 7):
        await renew(home, site, THIRTY.replace("30 days", f"{days} days"))
        await live_page(home, str(days))
        await store.record_lost_quotes()
        (one,) = await store.lost_quotes(housing.id)
        assert (one.url, one.quote, one.version_id) == (site.url("/a"), lost, page.version_id)
    assert await store.lost_quotes((await home.channel("other")).id) == []
    (notice,) = [one for one in await home.rows(NoticeRow) if one.url]
    assert (notice.kind, notice.url, notice.text) == ("source changed", site.url("/a"), lost)
    assert notice.channel_id == housing.id
