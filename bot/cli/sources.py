"""``footnote sources``: approved web pages, their state, and fetching those that are not fresh."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.bootstrap import open_home, open_ingestion
from bot.cli.home import chosen_channel
from bot.cli.json_output import dump, source_line
from bot.settings import Settings, load_settings
from storage.clock import utc_now
from storage.stores import Stores
from storage.web_pages.page_store import PageState, WebPage, count_pages, listed_pages
from storage.web_pages.web_sources import SOURCES_NAME, WebDomain, WebSourcesFile


@dataclass(frozen=True, slots=True)
class _Approved:
    """Web page with the domain that approves it."""

    domain: str
    page: WebPage


async def check_sources(options: argparse.Namespace) -> int:
    """Print mistakes in the file with their lines and return 2; else print unhealthy pages and return 1."""
    settings = load_settings()
    path = settings.home / SOURCES_NAME
    if not await asyncio.to_thread(path.exists):
        print(f"There is no {path}: no web page is approved", file=sys.stderr)
        return 0
    if await _are_mistaken(settings):
        return 2
    if not settings.storage.is_empty_home:
        async with open_home(settings) as stores:
            sources = await stores.web_sources.current()
            for mistake in sources.unknown(await stores.channels.all()):
                print(mistake, file=sys.stderr)
            chosen = await chosen_channel(stores, options.channel) if options.channel else None
            for lost in await stores.web_pages.lost_quotes(chosen.id if chosen else None):
                print(f"quote no longer on {lost.url}: {lost.quote}", file=sys.stderr)
    approved = await _approved(settings, options.channel)
    unwell = [one for one in approved if one.page.error or one.page.state is not PageState.FRESH]
    for one in unwell:
        print(dump(source_line(one.domain, one.page)) if options.json else _row(one))
        if one.page.has_failed_for_long:
            print(f"has failed since {one.page.failing_since:%Y-%m-%d}: {one.page.url}", file=sys.stderr)
    counts = _counts(approved, settings.storage.web_cache_days)
    print(f"{path}: no mistakes; {counts}", file=sys.stderr)
    return 1 if unwell else 0


async def list_sources(options: argparse.Namespace) -> int:
    """Print every approved page that the channel's questions, or without a channel any, may cite."""
    settings = load_settings()
    if await _are_mistaken(settings):
        return 2
    approved = await _approved(settings, options.channel)
    for one in approved:
        print(dump(source_line(one.domain, one.page)) if options.json else _row(one))
    if not approved:
        print("No web page is approved here.", file=sys.stderr)
    return 0


async def seed_sources(options: argparse.Namespace) -> int:
    """Fetch pages that are not fresh, with progress; return 1 if one could not be fetched.

    `serve` does the same automatically, some minutes later.
    """
    settings = load_settings()
    if await _are_mistaken(settings):
        return 2
    if options.dry_run:
        for one in await _approved(settings, options.channel):
            if one.page.error or one.page.state is not PageState.FRESH:
                print(dump(source_line(one.domain, one.page)) if options.json else _row(one))
        print("Nothing was fetched: this was a dry run.", file=sys.stderr)
        return 0
    async with open_ingestion(settings) as (stores, ingestion):
        domains = await _domains(stores, options.channel)
        await ingestion.seed_web_pages(domains, _print_progress)
    approved = await _approved(settings, options.channel)
    for one in approved:
        print(dump(source_line(one.domain, one.page)) if options.json else _row(one))
    unwell = sum(bool(one.page.error) or one.page.state is PageState.NEVER for one in approved)
    print(f"{len(approved) - unwell} of {len(approved)} pages are fetched", file=sys.stderr)
    return 1 if unwell else 0


async def _are_mistaken(settings: Settings) -> bool:
    """True if the list of sources or of libraries has mistakes; prints them with their lines."""
    file = WebSourcesFile(settings.home)
    await file.current()
    print(*file.mistakes, sep="\n", end="\n" if file.mistakes else "")
    return bool(file.mistakes)


async def _approved(settings: Settings, channel: str | None) -> list[_Approved]:
    """Return the pages in the order of the file; in an unused home, none is fetched yet."""
    if settings.storage.is_empty_home and channel is None:
        domains = (await WebSourcesFile(settings.home).current()).domains
        return [_Approved(one.name, WebPage(url, PageState.NEVER)) for one in domains for url in _named(one)]
    async with open_home(settings) as stores:
        return [
            _Approved(domain.name, page)
            for domain in await _domains(stores, channel)
            for page in await listed_pages([domain], stores.web_pages)
        ]


async def _domains(stores: Stores, channel: str | None) -> Sequence[WebDomain]:
    sources = await stores.web_sources.current()
    return sources.domains_for(await chosen_channel(stores, channel)) if channel else sources.domains


def _named(domain: WebDomain) -> Iterable[str]:
    return (*(one.url for one in domain.sitemaps), *domain.urls)


def _counts(approved: Sequence[_Approved], cache_days: float) -> str:
    counts = count_pages([one.page for one in approved], utc_now() - timedelta(days=cache_days))
    counted = ", ".join(f"{counts[state.value]} {state.value}" for state in PageState)
    failing = f"{counts['failing']} failing, {counts['failing_for_a_week']} of them for a week"
    return f"{counts['pages']} pages: {counted}; {failing}, {counts['changed']} changed"


def _row(one: _Approved) -> str:
    page = one.page
    fetched = f"{page.fetched_at:%Y-%m-%d %H:%M}" if page.fetched_at else "-"
    size = f"{len(page.listed)} pages" if page.listed is not None else f"{page.words} words"
    row = f"{page.state.value:<7} {fetched:<16} {size:>12}  {one.domain}  {page.url}"
    return f"{row}\n{'':<7} {page.error}" if page.error else row


def _print_progress(page: WebPage) -> None:
    print(f"{page.state.value} {page.url}{f': {page.error}' if page.error else ''}", file=sys.stderr)
