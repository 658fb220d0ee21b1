"""Decides when a file is finished: it rests long enough, and it ends as a PDF does."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ingestion.settings import IngestionSettings
from ingestion.sources.base import FileStat, ScannedFile, Source
from storage.clock import steady_seconds

# Readers find ``%%EOF`` in the last 1,024 bytes; some writers append a little more.
TAIL_BYTES = 2048
# How much longer a file on a share rests when it seems cut off: an upload may stall for a while.
TRUNCATED_FACTOR = 6


@dataclass(slots=True)
class _StableSince:
    """Since when a file has had this stat, and whether its end was there."""

    stat: FileStat
    since: float
    ends_well: bool | None = None


class StabilityCheck:
    """Remembers how long each file of one source has had the same stat."""

    def __init__(
        self,
        source: Source,
        settle_seconds: float,
        rest_seconds: float,
        *,
        trusts_age: bool = False,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """Settle the files of a source.

        Args:
            source: where they lie; they are opened only to read their ends.
            settle_seconds: rest of a file that ends as a PDF does.
            rest_seconds: rest of a file that seems cut off.
            trusts_age: a file that nobody touched for that long by this machine's clock has rested
                already; for a single run, which should not wait without need. What lies on a share
                carries the times of another clock, so its age is never trusted.
            clock: seconds that never jump.
        """
        # Where the files lie.
        self.source = source
        self._settle_seconds = settle_seconds
        self._rest_seconds = rest_seconds
        self._trusts_age = trusts_age and not source.is_remote
        self._clock = clock
        self._stable_since: dict[str, _StableSince] = {}

    def is_settled(self, seen: ScannedFile) -> bool:
        """True if the file may be taken as this scan shows it; blocks for one small read at most."""
        rest = self._stable_since.get(seen.file)
        if rest is None or rest.stat != seen.stat:
            touched = max(seen.stat.modified_ns, seen.stat.changed_ns) / 1e9
            age = max(0.0, time.time() - touched) if self._trusts_age else 0.0
            rest = self._stable_since[seen.file] = _StableSince(seen.stat, self._clock() - age)
        rested = self._clock() - rest.since
        if rested < self._settle_seconds:
            return False
        if rested >= self._rest_seconds:
            return True
        if rest.ends_well is None:
            rest.ends_well = b"%%EOF" in self.source.tail(seen, TAIL_BYTES)
        return rest.ends_well

    def restart(self, seen: ScannedFile) -> None:
        """The file changed under our hands: its rest begins anew."""
        self._stable_since.pop(seen.file, None)

    def keep(self, files: Collection[str]) -> None:
        """Forget every file but these."""
        for file in self._stable_since.keys() - set(files):
            del self._stable_since[file]


def stability_check_of(
    source: Source, settings: IngestionSettings, *, trusts_age: bool = False
) -> StabilityCheck:
    """How files of this source settle: on a network share every one of them rests longer."""
    rest = max(settings.rest_seconds, settings.settle_seconds)
    if source.is_remote:
        return StabilityCheck(source, rest, TRUNCATED_FACTOR * rest)
    return StabilityCheck(source, settings.settle_seconds, rest, trusts_age=trusts_age)
