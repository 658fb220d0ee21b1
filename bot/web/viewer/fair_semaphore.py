"""Fair scheduling of limited work, such as rendering pages and searching documents.

Take the turn before any lock on the work: otherwise a lock's waiter waits behind another holder's turns.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class FairSemaphore:
    """Semaphore that serves holders round-robin; one holder never takes all of several slots."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._share = max(1, places - 1)
        # Holder -> waiters; the holder whose turn is next comes first.
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._busy: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def slot(self, holder: Hashable) -> AsyncIterator[None]:
        """Wait for a slot, and hold it during the context."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(place)
        self._grant()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # granted just before the cancellation
                self._release(holder)
            raise
        try:
            yield
        finally:
            self._release(holder)

    def _release(self, holder: Hashable) -> None:
        self._free += 1
        self._busy[holder] -= 1
        if not self._busy[holder]:
            del self._busy[holder]
        self._grant()

    def _grant(self) -> None:
        is_granted = True
        while is_granted:
            is_granted = False
            for holder, places in list(self._waiting.items()):
                while places and places[0].done():  # cancelled waiters
                    places.popleft()
                if not places:
                    del self._waiting[holder]
                elif self._free and self._busy[holder] < self._share:
                    self._free -= 1
                    self._busy[holder] += 1
                    places.popleft().set_result(None)
                    self._waiting[holder] = self._waiting.pop(holder)  # to the end of the round
                    is_granted = True
