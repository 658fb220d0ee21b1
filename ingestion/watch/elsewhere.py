"""Tells which documents have left a channel's other folders, for files that move between folders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from uuid import UUID

from ingestion.sources import Scan, open_source
from ingestion.work.aside import run_aside
from storage.arrivals import Namesake
from storage.errors import SettingsError

SCAN_SECONDS = 60.0


class Elsewhere:
    """Looks at other folders when it must, and once at most: make a new one for every look."""

    def __init__(self) -> None:
        self._scans: dict[str, Scan] = {}

    async def gone(self, namesakes: Iterable[Namesake]) -> frozenset[UUID]:
        """Those documents whose files are surely not in their folders any more."""
        return frozenset([one.document for one in namesakes if await self._has_left(one)])

    async def _has_left(self, one: Namesake) -> bool:
        if one.location not in self._scans:
            self._scans[one.location] = await _scan(one.location)
        seen = self._scans[one.location]
        return seen.problem is None and one.file not in seen.files


async def _scan(location: str) -> Scan:
    try:
        async with asyncio.timeout(SCAN_SECONDS):
            return await run_aside(lambda: _look(location))
    except (SettingsError, TimeoutError):
        return Scan(problem="The folder does not answer.")


def _look(location: str) -> Scan:
    source = open_source(location)
    try:
        return source.scan()
    finally:
        source.close()
