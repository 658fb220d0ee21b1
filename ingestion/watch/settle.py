"""Stability check: a file is finished if it has rested for long enough and ends like its type."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ingestion.settings import IngestionSettings
from ingestion.sources.base import FileStat, ScannedFile, Source
from storage.clock import monotonic_seconds
from storage.readers.base import TAIL_BYTES
from storage.readers.registry import READERS

# Factor for the rest of a file on a share that looks truncated: an upload may stall.
TRUNCATED_FACTOR = 6


@dataclass(slots=True)
class _StableSince:
    """Stat of a file, the time since when it has had it, and whether it ends like its type."""

    stat: FileStat
    since: float
    ends_well: bool | None = None


class StabilityCheck:
    """Tracks how long each file of a source has kept its stat."""

    def __init__(
        self,
        source: Source,
        settle_seconds: float,
        rest_seconds: float,
        *,
        trusts_age: bool = False,
        clock: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Track the files of a source.

        Args:
            source: opened only to read the ends of files.
            settle_seconds: rest of a file that ends like its type.
            rest_seconds: rest of a file that looks truncated.
            trusts_age: count a file's age, by this machine's clock, as rest; for single runs, which should
                not wait without need. Never for shares, whose timestamps come from another clock.
        """
        self.source = source
        self._settle_seconds = settle_seconds
        self._rest_seconds = rest_seconds
        self._trusts_age = trusts_age and not source.is_remote
        self._clock = clock
        self._stable_since: dict[str, _StableSince] = {}

    def is_settled(self, seen: ScannedFile) -> bool:
        """True if the file is finished; blocks for at most one small read."""
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
            kind = READERS.type_of(seen.file)
            rest.ends_well = kind is not None and kind.ends(self.source.tail(seen, TAIL_BYTES))
        return rest.ends_well

    def restart(self, seen: ScannedFile) -> None:
        """Restart the rest of a file that changed during the copy."""
        self._stable_since.pop(seen.file, None)

    def retain_only(self, files: Collection[str]) -> None:
        """Drop all files but these."""
        for file in self._stable_since.keys() - set(files):
            del self._stable_since[file]


def stability_check_of(
    source: Source, settings: IngestionSettings, *, trusts_age: bool = False
) -> StabilityCheck:
    """Return the check for a source; on a network share all files rest longer."""
    rest = max(settings.rest_seconds, settings.settle_seconds)
    if source.is_remote:
        return StabilityCheck(source, rest, TRUNCATED_FACTOR * rest)
    return StabilityCheck(source, settings.settle_seconds, rest, trusts_age=trusts_age)
