"""Renewal of approved pages: fetches due pages, reads them in a sandboxed child, stores their text.

Due times are kept in SQL. A page that fails keeps its last text and is retried after minutes; no question
waits for a renewal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from yarl import URL

from ingestion.errors import WebPageError
from ingestion.jobs.compute_pool import ComputePool
from ingestion.settings import IngestionSettings
from ingestion.web_pages.fetcher import PAGES, SITEMAPS, FetchedPage, FetchLimits, PageFetcher
from storage.chat.channels import Channels
from storage.embeddings.base import Embedder
from storage.errors import DocumentError, InfrastructureError, NoPages, NotAPdf, raised_at
from storage.pdf.pdf_process import PdfProcess
from storage.readers.pdf import PDF
from storage.task_group import cancel_and_wait
from storage.web_pages.html_process import HtmlProcess
from storage.web_pages.page_store import WebPage, WebPageStore, WebText, approved_pages, chunks_of
from storage.web_pages.web_sources import MAX_URL_CHARS, WebDomain, WebSources, WebSourcesFile, normal_url

# Time limit per host and tick: what a slow host, or one with a crawl delay, has left waits for the next tick.
HOST_SECONDS = 30.0

# Called with each page after it was tried.
OnPage = Callable[[WebPage], None]

log = logging.getLogger(__name__)


class PageReader:
    """Turns fetched pages into text, split into chunks that fit the embedder's window."""

    def __init__(
        self,
        html: HtmlProcess,
        pdf: PdfProcess,
        compute_pool: ComputePool,
        embedder: Embedder,
        chunk_tokens: int,
    ) -> None:
        """Split into chunks of at most ``chunk_tokens`` tokens (cl100k_base). ``pdf`` is not closed here."""
        self._html = html
        self._pdf = pdf
        self._compute_pool = compute_pool
        self._embedder = embedder
        self._chunk_tokens = chunk_tokens

    async def read(self, page: FetchedPage) -> WebText:
        """Return the text of a page, split into chunks.

        Raises:
            DocumentError: it has none, or cannot be read within limits.
            EngineStartError: a side process cannot be started.
        """
        is_pdf = page.media_type == PDF.name
        tokenizer = self._embedder.tokenizer
        job = {
            "do": "chunk web pdf" if is_pdf else "chunk web page",
            "limit": self._chunk_tokens,
            "tokenizer": str(tokenizer) if tokenizer else None,
            "window": self._embedder.window,
        }
        read = self._read_pdf(page) if is_pdf else self._html.read(page.data, page.media_type, page.charset)
        try:
            made = await self._compute_pool.run(job, await read)
        except NotAPdf:  # whose message is about dropped files
            raise NoPages("the server says that this is a PDF, and it is none or a damaged one") from None
        return WebText(made["title"], made["day"], chunks_of(made["chunks"]))

    async def _read_pdf(self, page: FetchedPage) -> bytes:
        """Return the text of a PDF, read by the sandboxed child for documents."""
        with tempfile.NamedTemporaryFile(prefix="footnote-") as file:
            await asyncio.to_thread(_write, file, page.data)
            return await self._pdf.fetch(Path(file.name))

    async def read_sitemap(self, page: FetchedPage) -> list[str]:
        """Return the addresses in a sitemap.

        Raises:
            DocumentError: it is no sitemap, or a sitemap index.
            EngineStartError: a side process cannot be started.
        """
        data = await self._html.read(page.data, "application/xml", page.charset)
        found = await asyncio.to_thread(_addresses, data)
        if not found:
            raise NoPages("this is no sitemap that lists pages; one that lists sitemaps is not followed")
        return found

    async def aclose(self) -> None:
        """End the side process of the reader."""
        await self._html.aclose()


class WebPageRenewal:
    """Fetches and reads due pages."""

    def __init__(
        self,
        sources: WebSourcesFile,
        store: WebPageStore,
        fetcher: PageFetcher,
        reader: PageReader,
        *,
        embedder: Embedder,
        channels: Channels,
    ) -> None:
        """Embed chunks in advance with ``embedder``, so that no question waits for it.

        ``channels`` are those in whose name admins are notified.
        """
        self._channels = channels
        self._sources = sources
        self._store = store
        self._fetcher = fetcher
        self._reader = reader
        self._embedder = embedder
        # Outcome -> fetches since this process started.
        self.fetches = dict.fromkeys(("read", "unchanged", "failed"), 0)
        # Domain -> running task of ``fetch_soon``.
        self._asked: dict[str, asyncio.Task[None]] = {}

    async def tick(self) -> None:
        """Fetch due pages, sitemaps first, since the pages that they list are due with them.

        Raises:
            InfrastructureError: the database or a side process does not work.
        """
        await self._renew_due((await self._sources.current()).domains)
        await self._store.prune()

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
        await self._embed()

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
        await self._embed()
        await self._store.prune()
        return await self._store.pages([*sitemaps, *urls])

    async def aclose(self) -> None:
        """Cancel background fetches; close connections and side processes."""
        for task in list(self._asked.values()):
            await cancel_and_wait(task)
        await self._fetcher.aclose()
        await self._reader.aclose()

    async def _embed(self) -> None:
        """Embed texts without vectors, or with vectors of another embedder."""
        embedder = self._embedder
        for sha256 in await self._store.without_vectors(embedder.space):
            if text := await self._store.text(sha256):
                texts = [chunk.text for chunk in text.chunks]
                batches = [texts[at : at + embedder.batch] for at in range(0, len(texts), embedder.batch)]
                made = [await embedder.aembed(batch) for batch in batches]
                await self._store.store_vectors(sha256, embedder.space, np.concatenate(made))

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
                await self._store.store_listing(url, await self._reader.read_sitemap(page), _validators(page))
            else:
                await self._keep(url, page)
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

    async def _keep(self, url: str, page: FetchedPage) -> None:
        text = await self._reader.read(page)
        await self._store.store_text(url, text, _validators(page))


def make_renewal(
    settings: IngestionSettings,
    sources: WebSourcesFile,
    store: WebPageStore,
    *,
    embedder: Embedder,
    compute_pool: ComputePool,
    pdf: PdfProcess,
    channels: Channels,
    contact: str | None,
    html: HtmlProcess | None = None,
) -> WebPageRenewal:
    """Wire fetching and reading together; nothing is opened before the first page is due.

    ``contact``: told to servers, unless the settings name a contact. ``html``: reads pages; closed with the
    renewal.
    """
    fetcher = PageFetcher(
        settings.web_contact or contact or "no contact given",
        FetchLimits(int(settings.web_page_mb * 1024 * 1024), settings.web_page_seconds),
        loopback=settings.web_loopback,
    )
    reader = PageReader(html or HtmlProcess(), pdf, compute_pool, embedder, settings.chunk_tokens)
    return WebPageRenewal(sources, store, fetcher, reader, embedder=embedder, channels=channels)


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()


def _addresses(data: bytes) -> list[str]:
    """Return the valid addresses that the sandboxed child found in a sitemap."""
    found: list[str] = []
    for text in json.loads(data)["urls"]:
        with suppress(ValueError):
            found.append(normal_url(text))
    return [url for url in found if len(url) <= MAX_URL_CHARS]


def _validators(page: FetchedPage) -> dict[str, str]:
    """Return the headers of a conditional request."""
    asked = {"If-None-Match": page.etag, "If-Modified-Since": page.last_modified}
    return {name: value for name, value in asked.items() if value}
