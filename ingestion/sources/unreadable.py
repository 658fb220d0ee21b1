"""Remembers the files of a place that could not be read: no look tells when rights or disks are mended."""

from __future__ import annotations

import time
from collections.abc import Callable

from ingestion.sources.port import FileStat

RETRY_SECONDS = 600.0
"""After that long a file that could not be read is tried again."""


class UnreadableFiles:
    """Makes such files look new again after a while; for one place."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Measure the while by seconds that never jump."""
        self._clock = clock
        self._since: dict[tuple[str, ...], float] = {}

    def add(self, parts: tuple[str, ...]) -> None:
        """A file could not be read, once more or for the first time."""
        self._since.setdefault(parts, self._clock())

    def remove(self, parts: tuple[str, ...]) -> None:
        """A file could be read."""
        self._since.pop(parts, None)

    def shown(self, parts: tuple[str, ...], file_stat: FileStat) -> FileStat:
        """The look to remember a file by: soon after its first failure and then now and then another one."""
        if (since := self._since.get(parts)) is None:
            return file_stat
        return file_stat._replace(
            tag=f"{file_stat.tag} try {int((self._clock() - since) / RETRY_SECONDS) + 2}"
        )
