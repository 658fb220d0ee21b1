"""Click counts of answer sources, by citation and day; nothing is stored about the people.

Fetches by chat platforms and mail scanners, and browser prefetches, do not count. Counts are written some
seconds later, so that no page waits for them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import date

from aiohttp import web

from storage.chat.citations import Citations
from storage.clock import utc_now
from storage.errors import DatabaseUnavailable
from storage.models import CitationRecord

FLUSH_SECONDS = 5.0
# Timeout of the last write at shutdown.
LAST_SECONDS = 5.0
# Citations buffered while the database is down; more are not counted.
MAX_PENDING = 10_000

# User agents of programs that open links unattended; Cubot is a phone brand.
_PROGRAMS = re.compile(
    r"(?<!cu)bot|crawl|spider|preview|scan|fetch|monitor|externalhit|whatsapp|headless", re.IGNORECASE
)

log = logging.getLogger(__name__)


def is_person(request: web.Request) -> bool:
    """True if the request looks like a person opening a source in a browser.

    Navigation from quote to quote within the viewer does not count; opening in the console's frame does.
    """
    headers = request.headers
    ahead = (headers.get(name, "") for name in ("Sec-Purpose", "Purpose", "X-Moz", "X-Purpose"))
    if request.method != "GET" or any("pre" in one.lower() for one in ahead):
        return False
    agent = headers.get("User-Agent", "")
    if not agent.startswith("Mozilla/") or _PROGRAMS.search(agent):
        return False
    if headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        return False
    is_framed = headers.get("Sec-Fetch-Dest") == "iframe"
    return is_framed or headers.get("Sec-Fetch-Site") != "same-origin"


class SourceOpenings:
    """Counter of openings, written in the background."""

    def __init__(
        self,
        citations: Citations,
        count: Callable[[], None] | None = None,
        *,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """Call ``count`` for each opening, and write every ``flush_seconds``."""
        self._citations = citations
        self._flush_seconds = flush_seconds
        self._count = count
        self._pending: Counter[tuple[int, date]] = Counter()

    def record_opening(self, request: web.Request, citation: CitationRecord) -> None:
        """Count an opened link if a person opened it and it cites a quote of an answer."""
        key = citation.id, utc_now().date()
        if citation.number is None or not is_person(request):
            return
        if self._count:
            self._count()
        if key in self._pending or len(self._pending) < MAX_PENDING:
            self._pending[key] += 1

    async def flush(self) -> None:
        """Write the counts; on an outage they are retried at the next write."""
        openings, self._pending = self._pending, Counter()
        if not openings:
            return
        try:
            await self._citations.count_openings(openings)
        except DatabaseUnavailable as error:
            log.warning("source openings not written, retrying: %s", type(error).__name__)
            self._pending.update(openings)

    async def cleanup_context(self, _app: web.Application) -> AsyncIterator[None]:
        """Write every ``flush_seconds`` while the application serves, and once at shutdown."""
        ended = asyncio.Event()
        writing = asyncio.create_task(self._flush_until(ended), name="openings")
        yield
        ended.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await writing

    async def _flush_until(self, ended: asyncio.Event) -> None:
        """Write until ``ended``; never cancelled, as a cancelled write may or may not be committed."""
        is_last = False
        while not is_last:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), self._flush_seconds)
            is_last = ended.is_set()
            await self.flush()
