"""Counts how often people open the sources of answers: by citation and day, and nothing of who they are.

Chat platforms and mail scanners fetch links as well, and browsers do ahead of time: none of these counts.
What is counted is written down some seconds later, so no page waits for it.
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
# For what was counted last, when the service ends.
LAST_SECONDS = 5.0
# Citations that wait to be written down while the database is away; others are not counted.
MAX_UNWRITTEN = 10_000

# In the names of programs that open links for nobody; a Cubot is somebody's telephone.
_PROGRAMS = re.compile(
    r"(?<!cu)bot|crawl|spider|preview|scan|fetch|monitor|externalhit|whatsapp|headless", re.IGNORECASE
)

log = logging.getLogger(__name__)


def is_person(request: web.Request) -> bool:
    """True if somebody opened a page in a browser, as far as its request says.

    Within the viewer one walks from quote to quote: only who comes from elsewhere, or reads in the console's
    frame, opens a source.
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
    """Counts openings and writes them down in the background."""

    def __init__(
        self,
        citations: Citations,
        count: Callable[[], None] | None = None,
        *,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """Call ``count`` with each opening, and write every ``flush_seconds``."""
        self._citations = citations
        self._flush_seconds = flush_seconds
        self._count = count
        self._unwritten: Counter[tuple[int, date]] = Counter()

    def note(self, request: web.Request, citation: CitationRecord) -> None:
        """A link was opened; it counts if a person did, and if it is of an answer's quote."""
        key = citation.id, utc_now().date()
        if citation.number is None or not is_person(request):
            return
        if self._count:
            self._count()
        if key in self._unwritten or len(self._unwritten) < MAX_UNWRITTEN:
            self._unwritten[key] += 1

    async def write(self) -> None:
        """Write down what was counted; what cannot be written now is kept for the next time."""
        openings, self._unwritten = self._unwritten, Counter()
        if not openings:
            return
        try:
            await self._citations.count_openings(openings)
        except DatabaseUnavailable as error:
            log.warning("openings of sources are written later: %s", type(error).__name__)
            self._unwritten.update(openings)

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Write every few seconds for as long as the application serves, and once at its end."""
        ended = asyncio.Event()
        writing = asyncio.create_task(self._write_until(ended), name="openings")
        yield
        ended.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await writing

    async def _write_until(self, ended: asyncio.Event) -> None:
        """Never broken off: of a write that is, nobody knows whether it was kept."""
        is_last = False
        while not is_last:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), self._flush_seconds)
            is_last = ended.is_set()
            await self.write()
