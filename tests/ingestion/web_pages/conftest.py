"""A web site that tests script, and a fetcher that may ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fakes.web_site import WebSite, serving

from ingestion.web_pages.fetcher import FetchLimits, PageFetcher


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    """A site on this machine."""
    async with serving() as one:
        yield one


@pytest.fixture
async def fetcher() -> AsyncIterator[PageFetcher]:
    """One that may ask this machine, with limits that a test can reach."""
    fetcher = PageFetcher("admin@example.org", FetchLimits(bytes=20_000, seconds=1), loopback=True)
    yield fetcher
    await fetcher.aclose()
