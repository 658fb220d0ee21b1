"""Approved web pages: fetched, parsed in a child, stored as documents, renewed and deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from fakes.web_site import WebSite
from harness.empty_homes import make_sqlite
from harness.lasting_pool import LastingPdf
from samples.paper import pdf
from sqlalchemy import select, update
from sqlmodel import col

from ingestion.settings import IngestionSettings
from ingestion.web_pages.renewal import PageIntake, WebPageRenewal, make_fetcher
from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.documents.arrivals import Arrivals
from storage.files.blobs import Blobs
from storage.files.reading_files import ReadingFiles
from storage.models import ChannelKey, Platform
from storage.pdf.protocol import parse_reading
from storage.queues.planner import Generations
from storage.readers.html import HTML_READER
from storage.readers.registry import READERS
from storage.settings import StorageSettings
from storage.sql.database import Database
from storage.sql.tables import DocumentRow, NoticeRow, VersionRow, WebPageRow
from storage.web_pages.page_store import PageState, WebPage, WebPageStore
from storage.web_pages.web_sources import WebSourcesFile

PAGE = (
    "<html><head><title>Deposits - Council</title></head><body><nav><a href=/>Home</a> <a href=/jobs>Jobs</a>"
    "</nav><main><h1>Tenancy deposits</h1><p>{}</p><h2 id=scheme>Schemes</h2><p>There are three schemes that "
    "hold your money. Ask your landlord which one it is.</p></main><footer>All rights reserved.</footer>"
)
THIRTY = PAGE.format("A landlord must protect your deposit within 30 days of getting it.")


@dataclass
class Home:
    """A home with a site and a renewal."""

    path: Path
    site: WebSite
    database: Database
    store: WebPageStore
    sources: WebSourcesFile
    renewal: WebPageRenewal
    blobs: Blobs

    def approve(self, *urls: str) -> None:
        """Write the config file."""
        listed = ", ".join(url if url.startswith("{") else f'"{url}"' for url in urls)
        (self.path / "web_sources.toml").write_text(
            f'[[domain]]\nname = "tenancy"\nkeywords = ["deposit", "rent"]\nurls = [{listed}]\n'
        )

    async def page(self, path: str) -> WebPage:
        """Return the row of a page."""
        return (await self.store.pages([self.site.url(path)]))[0]

    async def versions(self, path: str) -> list[str]:
        """Return the contents of a page's document, the newest last; none of a deleted one."""
        query = (
            select(col(VersionRow.sha256))
            .join(DocumentRow, col(DocumentRow.id) == VersionRow.document_id)
            .where(col(DocumentRow.file) == self.site.url(path), col(DocumentRow.state) == "present")
            .order_by(col(VersionRow.number))
        )
        async with self.database.snapshot() as session:
            return list(await session.scalars(query))

    async def text(self, path: str) -> str:
        """Return the text that a reader finds in a page's newest version."""
        if not (versions := await self.versions(path)):
            return ""
        blob = await self.blobs.fetch(versions[-1])
        reader = READERS.reader_of([self.site.url(path)], blob)
        read = await reader.read(LastingPdf(StorageSettings(home=self.path)), blob)
        if reader is HTML_READER:
            return "\n".join(text for _, _, _, text in json.loads(read)["blocks"])
        return "\n".join(page.text for page in parse_reading(read).pages)

    async def wait_until_due(self, path: str) -> None:
        """Make a page due for renewal."""
        due = update(WebPageRow).where(col(WebPageRow.url) == self.site.url(path))
        async with self.database.transaction() as session:
            await session.execute(due.values(due_at=utc_now() - timedelta(seconds=1)))

    async def fail_since(self, ago: timedelta) -> None:
        """Backdate the start of all current failures."""
        old = utc_now() - ago
        async with self.database.transaction() as session:
            failing = update(WebPageRow).where(col(WebPageRow.failing_since) > utc_now() - timedelta(days=1))
            await session.execute(failing.values(failing_since=old))


def _renewal(path: Path, database: Database, store: WebPageStore, sources: WebSourcesFile) -> WebPageRenewal:
    """Return a renewal as the service builds it."""
    settings = IngestionSettings(web_loopback=True, web_page_mb=0.1, web_page_seconds=1)
    blobs = Blobs(path / "blobs")
    arrivals = Arrivals(database, Generations("quick", None), blobs)
    intake = PageIntake(store, arrivals, blobs, LastingPdf(StorageSettings(home=path)))
    return WebPageRenewal(
        sources, store, make_fetcher(settings, "me@example.org"), intake, Channels(database)
    )


@pytest.fixture
async def home(tmp_path: Path, site: WebSite) -> AsyncIterator[Home]:
    """An empty home next to a site."""
    database = await Database.open(make_sqlite(tmp_path))
    store = WebPageStore(database, ReadingFiles(tmp_path / "readings"))
    sources = WebSourcesFile(tmp_path)
    renewal = _renewal(tmp_path, database, store, sources)
    yield Home(tmp_path, site, database, store, sources, renewal, Blobs(tmp_path / "blobs"))
    await renewal.aclose()
    await database.aclose()


async def test_a_page_is_fetched_once_and_renewed_when_due(home: Home) -> None:
    """Covers headings, a page that is not due, and a changed page."""
    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = THIRTY
    await home.renewal.tick()
    page = await home.page("/a")
    assert (page.state, page.words) == (PageState.FRESH, 27)
    assert "Schemes" in (await home.text("/a")).splitlines()
    assert "rights reserved" not in await home.text("/a")
    await home.renewal.tick()
    assert home.site.paths == ["/a"]
    home.site.pages["/a"] = THIRTY.replace("30 days", "14 days")
    await home.wait_until_due("/a")
    await home.renewal.tick()
    assert "14 days" in await home.text("/a")
    assert (await home.page("/a")).changed_at != page.changed_at
    assert len(await home.versions("/a")) == 2


async def test_the_same_text_in_other_html_is_no_new_version(home: Home) -> None:
    """Shows that what a server changes at each request, as tokens and menus, is not read again."""
    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = THIRTY
    await home.renewal.tick()
    home.site.pages["/a"] = THIRTY.replace("Jobs", "Careers").replace("<nav>", "<!-- 42 --><nav>")
    await home.wait_until_due("/a")
    await home.renewal.tick()
    assert len(await home.versions("/a")) == 1
    assert (await home.page("/a")).changed_at is None


async def test_a_page_that_fails_keeps_its_text(home: Home) -> None:
    """Shows that the error is stored, and that the page is retried."""
    home.approve(home.site.url("/a"), home.site.url("/b"))
    home.site.pages["/a"] = THIRTY
    await home.renewal.tick()
    home.site.pages["/a"] = web.Response(status=500)
    await home.wait_until_due("/a")
    await home.renewal.tick()
    page, missing = await home.page("/a"), await home.page("/b")
    assert (page.state, page.error, page.failing_since is not None) == (
        PageState.FRESH,
        "the server answers 500",
        True,
    )
    assert (missing.state, missing.error) == (PageState.FAILED, "the server answers 404")
    assert "30 days" in await home.text("/a")
    assert await home.store.due() == []


async def test_an_unchanged_page_is_not_transferred_again(home: Home) -> None:
    """Uses the validators of the previous response."""

    async def page(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304)
        return web.Response(text=THIRTY, content_type="text/html", headers={"ETag": '"1"'})

    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = page
    await home.renewal.tick()
    first = await home.page("/a")
    await home.wait_until_due("/a")
    await home.renewal.tick()
    again = await home.page("/a")
    assert again.sha256 == first.sha256
    assert str(again.fetched_at) > str(first.fetched_at)


@pytest.mark.parametrize(
    ("body", "headers", "words"),
    [
        (b"<body><div id=app></div><script>a()</script>", {"Content-Type": "text/html"}, "no text"),
        (b"%PDF-1.7", {"Content-Type": "application/pdf"}, "damaged"),
        (b"<p>a</p>", {"Content-Type": "application/pdf"}, "says that this is a PDF, and it is none"),
        (b"a" * 200_000, {"Content-Type": "text/plain"}, "larger than"),
        (b"", {"Content-Type": "text/html"}, "no text"),
    ],
)  # fmt: skip
async def test_a_page_without_text_is_reported_to_admins(
    home: Home, body: bytes, headers: dict[str, str], words: str
) -> None:
    """Covers pages built by scripts, a PDF, a large page and an empty one."""
    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = web.Response(body=body, headers=headers)
    await home.renewal.tick()
    page = await home.page("/a")
    assert page.state is PageState.FAILED
    assert words in (page.error or "")


async def test_a_pdf_at_a_url_has_pages(home: Home) -> None:
    """Shows that it is stored as it is, and read as a dropped PDF."""
    home.approve(home.site.url("/a.pdf"))
    data = pdf("The first page is about deposits.", "The second page is about rent.")
    home.site.pages["/a.pdf"] = web.Response(body=data, content_type="application/pdf")
    await home.renewal.tick()
    page = await home.page("/a.pdf")
    assert (page.state, page.words, page.error) == (PageState.FRESH, 12, None)
    assert await home.text("/a.pdf") == "The first page is about deposits.\nThe second page is about rent."


async def test_a_sitemap_approves_pages_of_its_site_and_path_only(home: Home) -> None:
    """Up to its limit; pages are dropped with the sitemap."""
    locations = ["/renting/1", "/jobs/1", "/renting/2", "/renting/3"]
    urls = [home.site.url(one) for one in locations] + ["https://elsewhere.example/renting/4", "nonsense"]
    home.site.pages["/map.xml"] = web.Response(
        text='<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        + "".join(f"<url><loc> {url} </loc></url>" for url in urls)
        + "</urlset>",
        content_type="application/xml",
    )
    home.site.pages |= {one: THIRTY for one in locations}
    home.approve(f'{{ sitemap = "{home.site.url("/map.xml")}", under = "/renting/", most = 2 }}')
    await home.renewal.tick()
    assert home.site.paths == ["/map.xml", "/renting/1", "/renting/2"]
    assert (await home.page("/renting/2")).state is PageState.FRESH
    home.approve(home.site.url("/a"))
    await home.renewal.tick()
    assert (await home.page("/renting/2")).state is PageState.NEVER


async def test_a_page_removed_from_the_list_while_fetched_is_dropped(home: Home) -> None:
    home.approve(home.site.url("/a"))

    async def page(_: web.Request) -> web.Response:
        home.approve(home.site.url("/b"))
        await home.store.approve([home.site.url("/b")])
        return web.Response(text=THIRTY, content_type="text/html")

    home.site.pages["/a"] = page
    await home.renewal.tick()
    assert (await home.page("/a")).state is PageState.NEVER


async def test_an_invalid_file_at_startup_deletes_no_page(home: Home) -> None:
    """Shows that stored pages survive a restart with a mistake, and follow the file once it is fixed."""
    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = THIRTY
    await home.renewal.tick()
    (home.path / "web_sources.toml").write_text("[[domain]")
    restarted = _renewal(home.path, home.database, home.store, WebSourcesFile(home.path))
    await restarted.tick()
    assert "30 days" in await home.text("/a")
    home.approve(home.site.url("/b"))
    await restarted.tick()
    assert (await home.page("/a")).state is PageState.NEVER
    await restarted.aclose()


async def test_seeding_fetches_pages_that_are_not_fresh(home: Home) -> None:
    """Shows that a failed page is retried at once on request and a fresh one is not; each is reported."""
    home.approve(home.site.url("/a"), home.site.url("/b"))
    home.site.pages["/a"] = THIRTY
    domains = (await home.sources.current()).domains
    seen: list[WebPage] = []
    await home.renewal.prefetch(domains, seen.append)
    home.site.pages["/b"] = THIRTY
    after = await home.renewal.prefetch(domains, seen.append)
    assert sorted((one.url[-2:], one.state.value) for one in seen) == [
        ("/a", "fresh"),
        ("/b", "failed"),
        ("/b", "fresh"),
    ]
    assert [one.state for one in after] == [PageState.FRESH, PageState.FRESH]


async def notices(home: Home) -> list[tuple[str, str | None, str | None, int]]:
    """Return the notices for admins."""
    async with home.database.snapshot() as session:
        rows = await session.scalars(select(NoticeRow).order_by(col(NoticeRow.id)))
        return [(row.kind, row.url, row.text, row.channel_id) for row in rows]


async def test_admins_are_notified_once_of_a_week_of_failures(home: Home) -> None:
    """In the domain's channel; a day of failures is not announced, a second week is."""
    slack = await Channels(home.database).ensure(ChannelKey(Platform("slack"), "T1", "C1"))
    local = await Channels(home.database).ensure_named("housing")
    assert slack.id < local.id
    home.approve(home.site.url("/gone"))
    await home.renewal.tick()
    assert await notices(home) == []
    told = ("source failed", home.site.url("/gone"), "the server answers 404", local.id)
    for count in (1, 2):
        for _ in range(2):
            await home.fail_since(timedelta(days=8))
            await home.wait_until_due("/gone")
            await home.renewal.tick()
            assert await notices(home) == count * [told]
        home.site.pages["/gone"] = THIRTY
        await home.wait_until_due("/gone")
        await home.renewal.tick()
        del home.site.pages["/gone"]
        await home.wait_until_due("/gone")
        await home.renewal.tick()


async def test_a_slow_host_delays_no_other(home: Home) -> None:
    """Shows that pages of one host queue behind each other only."""
    is_asked = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await is_asked.wait()
        return web.Response(text=THIRTY, content_type="text/html")

    async def quick(_: web.Request) -> web.Response:
        is_asked.set()
        return web.Response(text=THIRTY, content_type="text/html")

    many = [f"/{number}" for number in range(8)]
    home.approve(*map(home.site.url, many), home.site.url("/z", "localhost"))
    home.site.pages |= {**dict.fromkeys(many, slow), "/z": quick}
    await home.renewal.tick()
    assert {(await home.page(path)).error for path in many} == {None}


async def test_concurrent_workers_fetch_a_page_once(home: Home) -> None:
    home.approve(home.site.url("/a"))
    home.site.pages["/a"] = THIRTY
    await asyncio.gather(home.renewal.tick(), home.renewal.tick())
    assert home.site.paths == ["/a"]


async def test_pages_missing_for_a_question_are_fetched_in_background(home: Home) -> None:
    """Questions about one domain share a task; other domains wait, and closing cancels it."""
    may_answer, is_asked = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        is_asked.set()
        await may_answer.wait()
        return web.Response(text=THIRTY, content_type="text/html")

    home.approve(home.site.url("/a"))
    with (home.path / "web_sources.toml").open("a") as file:
        file.write(f'[[domain]]\nname = "other"\nkeywords = ["boiler"]\nurls = ["{home.site.url("/b")}"]\n')
    home.site.pages |= {"/a": slow, "/b": THIRTY}
    (tenancy, other) = (await home.sources.current()).domains
    fetching = home.renewal.fetch_soon(tenancy)
    assert home.renewal.fetch_soon(tenancy) is fetching
    await is_asked.wait()
    may_answer.set()
    await fetching
    assert [(await home.page(path)).state for path in ("/a", "/b")] == [PageState.FRESH, PageState.NEVER]
    may_answer.clear()
    await home.wait_until_due("/a")
    unfinished = home.renewal.fetch_soon(tenancy)
    await asyncio.sleep(0)
    await home.renewal.aclose()
    assert unfinished.cancelled()
    assert await asyncio.gather(home.renewal.fetch_soon(other)) == [None]
