"""Renewal of approved pages: fetches due pages and stores them as documents.

Due times are kept in SQL. A page that fails keeps its last text and is retried after minutes; no question
waits for a renewal.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from yarl import URL

from ingestion.errors import WebPageError
from ingestion.settings import IngestionSettings
from ingestion.web_pages.fetcher import PAGES, SITEMAPS, FetchedPage, FetchLimits, PageFetcher
from storage.chat.channels import Channels
from storage.documents.arrivals import Arrivals
from storage.documents.identity import Arrival
from storage.errors import DocumentError, InfrastructureError, NoPages, NotAPdf, raised_at
from storage.files.blobs import Blobs
from storage.pdf.pdf_process import PdfProcess
from storage.pdf.protocol import parse_reading
from storage.readers.html import HTML_READER
from storage.readers.registry import READERS
from storage.task_group import cancel_and_wait
from storage.web_pages.page_store import WebPage, WebPageStore, approved_pages
from storage.web_pages.web_sources import MAX_URL_CHARS, WebDomain, WebSources, WebSourcesFile, normal_url

# Time limit per host and tick: what a slow host, or one with a crawl delay, has left waits for the next tick.
HOST_SECONDS = 30.0

# Called with each page after it was tried.
OnPage = Callable[[WebPage], None]

log = logging.getLogger(__name__)


class PageIntake:
    """Stores fetched pages as versions of their documents, after a sandboxed child has found text in them."""

    def __init__(self, store: WebPageStore, arrivals: Arrivals, blobs: Blobs, sandbox: PdfProcess) -> None:
        """``sandbox`` is not closed here."""
        self._store = store
        self._arrivals = arrivals
        self._blobs = blobs
        self._sandbox = sandbox

    async def store(self, known: WebPage, page: FetchedPage) -> None:
        """Store a page; a new version only if its text has changed.

        Raises:
            DocumentError: it has no text, or cannot be read within limits.
            InfrastructureError: the database, a disk or a side process does not work.
        """
        async with self._written(page) as path:
            reader = await asyncio.to_thread(READERS.reader_of, [known.url], path)
            try:
                text = await reader.read(self._sandbox, path)
                words = await asyncio.to_thread(_count_words, text, is_html=reader is HTML_READER)
            except NotAPdf:  # whose message is about dropped files
                raise NoPages("the server says that this is a PDF, and it is none or a damaged one") from None
            read = hashlib.sha256(text).hexdigest()
            if read != known.sha256:
                sha256, size = hashlib.sha256(page.content).hexdigest(), len(page.content)
                keep = partial(self._blobs.adopt, path, sha256)
                folder = await self._store.folder()
                await self._arrivals.store(folder, [Arrival(known.url, {}, sha256, size, keep)], None)
        await self._store.mark_read(known.url, read, words, page.validators)

    async def read_sitemap(self, page: FetchedPage) -> list[str]:
        """Return the addresses in a sitemap.

        Raises:
            DocumentError: it is no sitemap, or a sitemap index.
            InfrastructureError: a disk or a side process does not work.
        """
        async with self._written(replace(page, media_type="application/xml")) as path:
            found = await asyncio.to_thread(_addresses, await self._sandbox.fetch_html(path))
        if not found:
            raise NoPages("this is no sitemap that lists pages; one that lists sitemaps is not followed")
        return found

    @asynccontextmanager
    async def _written(self, page: FetchedPage) -> AsyncIterator[Path]:
        """Yield a temporary file with the page, which may become a blob."""
        path = self._blobs.new_temporary()
        try:
            await asyncio.to_thread(path.write_bytes, page.content)
            yield path
        finally:
            path.unlink(missing_ok=True)


class WebPageRenewal:
    """Fetches and reads due pages."""

    def __init__(
        self,
        sources: WebSourcesFile,
        store: WebPageStore,
        fetcher: PageFetcher,
        intake: PageIntake,
        channels: Channels,
    ) -> None:
        """``channels`` are those in whose name admins are notified."""
        self._channels = channels
        self._sources = sources
        self._store = store
        self._fetcher = fetcher
        self._intake = intake
        # Outcome -> fetches since this process started.
        self.fetches = dict.fromkeys(("read", "unchanged", "failed"), 0)
        # Domain -> running task of ``fetch_soon``.
        self._asked: dict[str, asyncio.Task[None]] = {}

    async def tick(self) -> None:
        """Fetch due pages, sitemaps first, since the pages that they list are due with them.

        Raises:
            InfrastructureError: the database or a side process does not work.
        """
        domains = (await self._sources.current()).domains
        await self._renew_due(domains)
        if domains:
            await self._store.record_lost_quotes()

    def fetch_soon(self, domain: WebDomain) -> asyncio.Task[None]:
        """Fetch the due pages of a domain in the background; errors of engines are logged.

        Concurrent calls for one domain share a task.
        """
        task = self._asked.get(domain.name)
        if task is None:
            task = self._asked[domain.name] = asyncio.create_task(self._fetch_asked(domain), name="web pages")
            task.add_done_callback(lambda _: self._asked.pop(domain.name, None))
        return task

    async def _fetch_asked(self, domain: WebDomain) -> None:
        try:
            await self._renew_due([domain])
        except* InfrastructureError as error:  # the pages stay due
            log.warning("fetching pages for a question failed: %s", raised_at(error))

    async def _renew_due(self, domains: Sequence[WebDomain]) -> None:
        """Fetch the due pages of domains, sitemaps first, since the pages that they list become due, too."""
        sources = await self._sources.current()
        sitemaps = {one.url for domain in domains for one in domain.sitemaps}
        # The second pass fetches the pages of sitemaps renewed in the first one.
        for _ in range(2):
            await self._approve(sources)
            wanted = {*sitemaps, *(await approved_pages(domains, self._store))}
            due = [url for url in await self._store.due() if url in wanted]
            first = [url for url in due if url in sitemaps]
            await self._renew_all(first or due, sources)
            if not first:
                break

    async def prefetch(self, domains: Sequence[WebDomain], on_page: OnPage) -> list[WebPage]:
        """Fetch all pages of domains that are not fresh, and report each; return the state of all.

        Raises:
            InfrastructureError: the database or a side process does not work.
        """
        sources = await self._sources.current()
        sitemaps = [one.url for domain in domains for one in domain.sitemaps]
        await self._approve(sources)
        await self._renew_all(sitemaps, sources, on_page, is_forced=True)
        await self._approve(sources)
        urls = await approved_pages(domains, self._store)
        await self._renew_all(urls, sources, on_page, is_forced=True)
        return await self._store.pages([*sitemaps, *urls])

    async def aclose(self) -> None:
        """Cancel background fetches; close connections."""
        for task in list(self._asked.values()):
            await cancel_and_wait(task)
        await self._fetcher.aclose()

    async def _approve(self, sources: WebSources) -> None:
        if not self._sources.is_known:
            return  # an invalid list must not discard what was fetched
        sitemaps = [one.url for domain in sources.domains for one in domain.sitemaps]
        await self._store.approve([*sitemaps, *(await approved_pages(sources.domains, self._store))])

    async def _renew_all(
        self,
        urls: Iterable[str],
        sources: WebSources,
        on_page: OnPage = lambda _: None,
        *,
        is_forced: bool = False,
    ) -> None:
        """Renew pages: hosts concurrently, the pages of one host one after the other.

        ``is_forced``: also retry failures that are not due yet, without a time limit.
        """
        sitemaps = {one.url for domain in sources.domains for one in domain.sitemaps}
        clock = asyncio.get_running_loop().time

        async def renew(own: Sequence[str]) -> None:
            until = clock() + HOST_SECONDS
            for url in own:
                if not is_forced and clock() > until:
                    return
                if await self._store.claim(url, is_forced=is_forced):
                    await self._renew(url, is_sitemap=url in sitemaps)
                    (page,) = await self._store.pages([url])
                    on_page(page)

        hosts: dict[str, list[str]] = {}
        for url in dict.fromkeys(urls):
            hosts.setdefault(URL(url).host or "", []).append(url)
        async with asyncio.TaskGroup() as group:
            for own in hosts.values():
                group.create_task(renew(own))

    async def _renew(self, url: str, *, is_sitemap: bool) -> None:
        """Fetch and store one page, or store its failure."""
        (known,) = await self._store.pages([url])
        # Read again, as the list may have changed since this page became due.
        sources = await self._sources.current()
        allowed = {one.url for domain in sources.domains for one in domain.sitemaps} if is_sitemap else None
        try:
            page = await self._fetcher.fetch(
                url,
                allows=allowed.__contains__ if allowed is not None else partial(sources.answers_for, url),
                validators=known.validators,
                media_types=SITEMAPS if is_sitemap else PAGES,
            )
            self.fetches["unchanged" if page is None else "read"] += 1
            if page is None:
                await self._store.mark_not_modified(url)
            elif is_sitemap:
                await self._store.store_listing(url, await self._intake.read_sitemap(page), page.validators)
            else:
                await self._intake.store(known, page)
        except (WebPageError, DocumentError) as error:
            log.info("an approved page could not be renewed: %s", type(error).__name__)
            self.fetches["failed"] += 1
            await self._store.record_failure(url, str(error), await self._notified_channel(url, sources))

    async def _notified_channel(self, url: str, sources: WebSources) -> int | None:
        """Return a channel that may search a page, preferably a local one."""
        channels = [
            channel
            for channel in await self._channels.all()
            if any(domain.allows(url) for domain in sources.domains_for(channel))
        ]
        ordered = sorted(channels, key=lambda one: (not one.is_local, one.id))
        return ordered[0].id if ordered else None


def make_fetcher(settings: IngestionSettings, contact: str | None) -> PageFetcher:
    """Return a fetcher; ``contact`` is told to servers, unless the settings name a contact."""
    return PageFetcher(
        settings.web_contact or contact or "no contact given",
        FetchLimits(int(settings.web_page_mb * 1024 * 1024), settings.web_page_seconds),
        loopback=settings.web_loopback,
    )


def _count_words(text: bytes, *, is_html: bool) -> int:
    """Return the number of words that could be cited.

    Raises:
        DocumentError: there are none.
    """
    if is_html:
        blocks = json.loads(text)["blocks"]
        words = sum(len(words.split()) for kind, _, _, words in blocks if kind != "heading")
        missing = "the page holds no text that could be cited; it may need JavaScript"
    else:
        words = sum(len(page.words) for page in parse_reading(text).pages)
        missing = "the PDF holds no text"
    if not words:
        raise NoPages(missing)
    return words


def _addresses(data: bytes) -> list[str]:
    """Return the valid addresses that the sandboxed child found in a sitemap."""
    found: list[str] = []
    for text in json.loads(data)["urls"]:
        with suppress(ValueError):
            found.append(normal_url(text))
    return [url for url in found if len(url) <= MAX_URL_CHARS]
