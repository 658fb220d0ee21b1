"""Counts publications again after the index was away, and publishes anew what lost a part.

A server that is killed can lose vectors it had acknowledged. What it wrote last is counted at once;
``reconciling.py`` counts the chunks of all.
"""

from __future__ import annotations

import logging

from storage.clock import steady_seconds
from storage.errors import IncompletePublication, UnknownTenant
from storage.index.contract import Index
from storage.publication_work import ExpectedPublication, PublicationQueue

RECENT = 200
"""Publications counted again, those that went live last."""
MAX_INTERVAL_SECONDS = 3600.0
"""They are counted this often in any case: another machine's server may be away unseen."""

_log = logging.getLogger(__name__)


class Verifier:
    """Compares what answers with what the index holds; every look but a due one costs a ping."""

    def __init__(self, work: PublicationQueue, index: Index) -> None:
        self._work = work
        self._index = index
        self._outages = 0
        self._due_at = steady_seconds()

    async def tick(self) -> None:
        """Verify at the first look, after each outage, and when the last time is long ago.

        Raises:
            InfrastructureError: the index is away, or the database does not work; the next look goes on.
        """
        await self._index.ping()
        outages = self._index.outages
        if outages == self._outages and steady_seconds() < self._due_at:
            return
        for publication in await self._work.newest_live(RECENT):
            await self.verify(publication)
        self._outages, self._due_at = outages, steady_seconds() + MAX_INTERVAL_SECONDS

    async def verify(self, one: ExpectedPublication) -> bool:
        """Count one publication; returns whether it was incomplete and is published anew.

        Raises:
            InfrastructureError: the index is away, or the database does not work.
        """
        try:
            await self._index.seal(
                one.tenant, one.id, chunks=one.objects, vectors=one.vectors, space=one.space
            )
        except (IncompletePublication, UnknownTenant):
            if await self._work.replace_live(one.id):
                _log.warning("publication=%s outcome=incomplete: it is published again", one.id)
                return True
        return False
