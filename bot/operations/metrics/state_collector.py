"""Gauges read from SQL, and counters held elsewhere: collected on scrape, cached for seconds.

Gauges need no counting along the way: one bounded statement reads all, whichever process did the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from storage.clock import monotonic_seconds
from storage.documents.workload import WorkCount, read_workload
from storage.errors import DatabaseUnavailable
from storage.sql.database import Database

# TTL of the last SQL read: scrapes within it share the read.
CACHE_SECONDS = 5.0
# Timeout; a slower database counts as down for this scrape.
READ_SECONDS = 5.0

# (table, state, rung) -> queue.
QUEUES = {
    ("inbox", "waiting", ""): "questions",
    ("outbox", "posting", ""): "replies",
    ("outbox", "placed", ""): "replies",
    ("notice", "waiting", ""): "notices",
    ("notice", "posting", ""): "notices",
    ("reading", "waiting", "quick"): "quick readings",
    ("reading", "waiting", "full"): "full readings",
    ("publication", "pending", "quick"): "publications",
    ("publication", "pending", "full"): "publications",
}
RUNGS = ("quick", "full")
# Table -> states; empty states are exported as 0, so that the first increase is visible.
STATES = {
    "reading": ("waiting", "done", "failed"),
    "publication": ("pending", "live", "retired", "removed"),
    "document": ("present", "quarantined", "deleted"),
    "web_page": ("read", "failing", "waiting"),
}


@dataclass(frozen=True, slots=True)
class CountSources:
    """Counters held where the work is done, by fixed names; read, never reset."""

    # Cache -> (hits, misses).
    cache_hits: Callable[[], Mapping[str, tuple[int, int]]]
    # Outcome -> fetches of approved web pages.
    web_fetches: Callable[[], Mapping[str, int]]
    # Names of parts that do not work.
    not_ready: Callable[[], Awaitable[Sequence[str]]]
    # Names of all parts.
    parts: Sequence[str]


class StateCollector(Collector):
    """Collector that caches the last SQL read for ``collect``, which cannot await."""

    def __init__(self, database: Database, sources: CountSources, registry: CollectorRegistry) -> None:
        """Register with ``registry``; ``render`` renders everything in it."""
        self._database = database
        self._sources = sources
        self._registry = registry
        self._work: Sequence[WorkCount] | None = None
        self._not_ready: Sequence[str] = ()
        self._read_at: float | None = None
        self._lock = asyncio.Lock()
        registry.register(self)

    async def render(self) -> bytes:
        """Return the page that Prometheus scrapes."""
        async with self._lock:
            if self._read_at is None or monotonic_seconds() - self._read_at >= CACHE_SECONDS:
                self._work, self._not_ready = await asyncio.gather(
                    self._read_work(), self._sources.not_ready()
                )
                self._read_at = monotonic_seconds()
        return generate_latest(self._registry)

    async def _read_work(self) -> Sequence[WorkCount] | None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await read_workload(self._database)
        except (DatabaseUnavailable, TimeoutError):
            return None

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions, so that registration does not collect."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families of the last read."""
        up = GaugeMetricFamily("footnote_database_up", "1 if the database answers.")
        up.add_metric((), self._work is not None)
        ready = GaugeMetricFamily("footnote_ready", "1 if a part works.", labels=["part"])
        for part in self._sources.parts:
            ready.add_metric((part,), part not in self._not_ready)
        yield from (up, ready)
        yield from self._counts()
        if self._work is not None:
            yield from _queues(self._work)
            yield from _states(self._work)

    def _counts(self) -> Iterable[Metric]:
        caches = CounterMetricFamily("footnote_cache", "Cache lookups.", labels=["cache", "result"])
        for cache, (hits, misses) in self._sources.cache_hits().items():
            caches.add_metric((cache, "hit"), hits)
            caches.add_metric((cache, "miss"), misses)
        fetches = CounterMetricFamily(
            "footnote_web_fetches", "Fetches of approved web pages.", labels=["outcome"]
        )
        for outcome, count in self._sources.web_fetches().items():
            fetches.add_metric((outcome,), count)
        return caches, fetches


def _queues(work: Sequence[WorkCount]) -> Iterable[Metric]:
    items = GaugeMetricFamily("footnote_queue_items", "Pending items by queue.", labels=["queue"])
    oldest = GaugeMetricFamily(
        "footnote_queue_oldest_seconds", "Age of the oldest pending item.", labels=["queue"]
    )
    leases = GaugeMetricFamily("footnote_leases", "Items in progress by queue.", labels=["queue"])
    for queue in dict.fromkeys(QUEUES.values()):
        held = [one for one in work if QUEUES.get((one.table, one.state, one.rung)) == queue]
        items.add_metric((queue,), sum(one.count for one in held))
        oldest.add_metric((queue,), max((one.oldest_seconds for one in held), default=0.0))
        leases.add_metric((queue,), sum(one.leased for one in held))
    return items, oldest, leases


def _states(work: Sequence[WorkCount]) -> Iterable[Metric]:
    readings = GaugeMetricFamily("footnote_readings", "Readings of contents.", labels=["rung", "state"])
    publications = GaugeMetricFamily(
        "footnote_publications", "Readings in channels.", labels=["rung", "state"]
    )
    documents = GaugeMetricFamily("footnote_documents", "Documents of all channels.", labels=["state"])
    pages = GaugeMetricFamily("footnote_web_pages", "Approved web pages.", labels=["state"])
    counts = {(one.table, one.state, one.rung): one.count for one in work}
    for table, by_rung in (("reading", readings), ("publication", publications)):
        for rung, state in product(RUNGS, STATES[table]):
            by_rung.add_metric((rung, state), counts.get((table, state, rung), 0))
    for table, by_state in (("document", documents), ("web_page", pages)):
        for state in STATES[table]:
            by_state.add_metric((state,), counts.get((table, state, ""), 0))
    return readings, publications, documents, pages
