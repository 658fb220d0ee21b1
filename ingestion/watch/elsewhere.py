"""Tells which documents have left a channel's other folders, for files that move between folders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from uuid import UUID

from ingestion.sources import open_source
from ingestion.sources.port import Scan
from ingestion.work.aside import run_in_thread
from storage.arrivals import SameContentDocument
from storage.errors import SettingsError

SCAN_SECONDS = 60.0


class OtherFolders:
    """Looks at other folders when it must, and once at most: make a new one for every look."""

    def __init__(self) -> None:
        self._scans: dict[str, Scan] = {}

    async def gone(self, same_content_documents: Iterable[SameContentDocument]) -> frozenset[UUID]:
        """Those documents whose files are surely not in their folders any more."""
        return frozenset([one.document for one in same_content_documents if await self._has_left(one)])

    async def _has_left(self, one: SameContentDocument) -> bool:
        if one.location not in self._scans:
            self._scans[one.location] = await _scan(one.location)
        seen = self._scans[one.location]
        return seen.problem is None and one.file not in seen.files


async def _scan(location: str) -> Scan:
    try:
        async with asyncio.timeout(SCAN_SECONDS):
            return await run_in_thread(lambda: _scan_location(location))
    except (SettingsError, TimeoutError):
        return Scan(problem="The folder does not answer.")


def _scan_location(location: str) -> Scan:
    source = open_source(location)
    try:
        return source.scan()
    finally:
        source.close()
