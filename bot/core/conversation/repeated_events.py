"""Events that a platform sends again while, or after, this process keeps them.

A platform that had to wait sends an event again. If each repetition waited for the database like the first
one, a short flood would feed itself: more work would wait the longer it waits, and nothing would be
acknowledged in time any more. So a repetition costs no work here: it waits for what the first one began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from storage.errors import DatabaseUnavailable

# Events that are known to be kept; an older one is looked up in the database again.
MAX_KEPT = 10_000


class RepeatedEvents:
    """Keeps each event once, however often it comes meanwhile."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        """Know the last ``most`` events that were kept."""
        self._most = most
        self._kept: dict[Hashable, None] = {}
        self._being_kept: dict[Hashable, asyncio.Future[None]] = {}

    async def keep_once(self, event: Hashable, keep: Callable[[], Awaitable[bool]]) -> bool:
        """What ``keep`` returns; False for an event that was kept, once that is sure.

        Args:
            event: names the event.
            keep: returns when the event is kept for good, and whether it is new.

        Raises:
            DatabaseUnavailable: it could not be kept, by this call or by the one that began earlier.
        """
        if event in self._kept:
            return False
        if earlier := self._being_kept.get(event):
            await asyncio.shield(earlier)  # whoever gives up waiting leaves it to the others
            return False
        outcome = self._being_kept[event] = asyncio.get_running_loop().create_future()
        try:
            is_new = await keep()
        except BaseException:
            outcome.set_exception(DatabaseUnavailable("the event could not be kept when it came first"))
            outcome.exception()  # nobody need have waited for it
            raise
        finally:
            del self._being_kept[event]
        outcome.set_result(None)
        self._kept[event] = None
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return is_new
