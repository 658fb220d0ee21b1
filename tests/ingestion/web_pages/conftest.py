"""A scripted web site and a fetcher with access to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fakes.web_site import WebSite, serving

from ingestion.web_pages.fetcher import FetchLimits, PageFetcher


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    """A site on loopback."""
    async with serving() as one:
        yield one


@pytest.fixture
async def fetcher() -> AsyncIterator[PageFetcher]:
    """A fetcher that may access loopback, with small limits."""
    fetcher = PageFetcher("admin@example.org", FetchLimits(bytes=20_000, seconds=1), loopback=True)
    yield fetcher
    await fetcher.aclose()
