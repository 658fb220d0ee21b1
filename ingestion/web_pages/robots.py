"""Robots exclusion protocol (RFC 9309): what a site's robots.txt allows, and its crawl delay."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego
from yarl import URL

from ingestion.errors import WebPageError

# TTL of a cached robots.txt; RFC 9309 allows a day.
TTL_SECONDS = 86_400.0
# How long a site is left alone after its robots.txt could not be fetched.
RETRY_SECONDS = 600.0
# Longer crawl delays are capped: fifty pages an hour are slow enough for any site.
MAX_DELAY_SECONDS = 60.0

# Our user agent in robots.txt files.
USER_AGENT = "Footnote"

# Returns the text at an address, None if there is none. Raises WebPageError.
ReadRobots = Callable[[str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """Rules of one site, until they expire."""

    # None: unknown, so nothing is fetched.
    rules: Protego | None
    expires_at: float
    # Why they are unknown, for an admin.
    reason: str = ""

    def allow(self, url: str) -> bool:
        """True if a page may be fetched."""
        return self.rules is not None and bool(self.rules.can_fetch(url, USER_AGENT))

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        asked = self.rules.crawl_delay(USER_AGENT) if self.rules else None
        return min(float(asked or 0), MAX_DELAY_SECONDS)


class Robots:
    """Cache of the rules of all sites."""

    def __init__(self, read: ReadRobots, clock: Callable[[], float] = time.monotonic) -> None:
        """Fetch robots.txt files with ``read``."""
        self._read = read
        self._clock = clock
        self._rules: dict[str, RobotsRules] = {}

    async def rules_for(self, url: str) -> RobotsRules:
        """Return the rules of the site of a page.

        A site without a robots.txt allows everything; one that does not answer allows nothing for a while.
        """
        origin = URL(url).origin()
        known = self._rules.get(str(origin))
        if known is None or self._clock() >= known.expires_at:
            known = self._rules[str(origin)] = await self._ask(str(origin / "robots.txt"))
        return known

    async def _ask(self, url: str) -> RobotsRules:
        try:
            text = await self._read(url)
        except WebPageError as error:
            return RobotsRules(None, self._clock() + RETRY_SECONDS, str(error))
        return RobotsRules(Protego.parse(text or ""), self._clock() + TTL_SECONDS)
