"""What a site's robots.txt lets us fetch, and how long we wait between two requests (RFC 9309)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego
from yarl import URL

from ingestion.errors import WebPageError

# How long a robots.txt is believed; RFC 9309 allows a day.
KEPT_SECONDS = 86_400.0
# How long a site whose robots.txt did not come is left alone.
RETRY_SECONDS = 600.0
# A longer crawl-delay is taken for this one: fifty pages an hour are slow enough for anybody.
MAX_DELAY_SECONDS = 60.0

# As robots.txt files call us.
NAME = "Footnote"

# The text at an address; None where there is none. Raises WebPageError.
ReadRobots = Callable[[str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """One site's rules, and until when they are believed."""

    # None: nobody knows, so nothing is fetched.
    rules: Protego | None
    until: float
    # Why nobody knows, for an admin.
    reason: str = ""

    def allow(self, url: str) -> bool:
        """True if a page may be fetched."""
        return self.rules is not None and bool(self.rules.can_fetch(url, NAME))

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        asked = self.rules.crawl_delay(NAME) if self.rules else None
        return min(float(asked or 0), MAX_DELAY_SECONDS)


class Robots:
    """The rules of every site that is asked."""

    def __init__(self, read: ReadRobots, clock: Callable[[], float] = time.monotonic) -> None:
        """``read``: fetches a robots.txt."""
        self._read = read
        self._clock = clock
        self._rules: dict[str, RobotsRules] = {}

    async def of(self, url: str) -> RobotsRules:
        """Return the rules of the site that a page stands on.

        A site without a robots.txt allows everything; one that does not answer allows nothing for a while.
        """
        origin = URL(url).origin()
        known = self._rules.get(str(origin))
        if known is None or self._clock() >= known.until:
            known = self._rules[str(origin)] = await self._ask(str(origin / "robots.txt"))
        return known

    async def _ask(self, url: str) -> RobotsRules:
        try:
            text = await self._read(url)
        except WebPageError as error:
            return RobotsRules(None, self._clock() + RETRY_SECONDS, str(error))
        return RobotsRules(Protego.parse(text or ""), self._clock() + KEPT_SECONDS)
