"""Deduplicates events that a platform redelivers while, or after, this process stores them.

A platform that has to wait redelivers an event. If every redelivery queued for the database like the first
one, a short flood would feed itself: the longer the queue, the more would enter it, until nothing was
acknowledged in time. So a redelivery costs no work here: it awaits the outcome of the first one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from storage.errors import DatabaseUnavailable

# Events known to be stored; an older one is looked up in the database again.
MAX_KEPT = 10_000


class EventDeduplicator:
    """Stores each event once, however often it arrives concurrently."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        """Remember the last ``most`` events that were stored."""
        self._most = most
        self._kept: dict[Hashable, None] = {}
        self._being_kept: dict[Hashable, asyncio.Future[None]] = {}

    async def store_once(self, event: Hashable, keep: Callable[[], Awaitable[bool]]) -> bool:
        """Return the result of ``keep``; False for a duplicate, once the event is surely stored.

        Args:
            keep: returns once the event is stored durably: True if it is new.

        Raises:
            DatabaseUnavailable: this call, or the earlier one that it awaited, could not store it.
        """
        if event in self._kept:
            return False
        if earlier := self._being_kept.get(event):
            await asyncio.shield(earlier)  # cancelling one waiter must not cancel it for the others
            return False
        outcome = self._being_kept[event] = asyncio.get_running_loop().create_future()
        try:
            is_new = await keep()
        except BaseException:
            outcome.set_exception(DatabaseUnavailable("first delivery of the event could not be stored"))
            outcome.exception()  # mark as retrieved: without a waiter, asyncio would log it
            raise
        finally:
            del self._being_kept[event]
        outcome.set_result(None)
        self._kept[event] = None
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return is_new
