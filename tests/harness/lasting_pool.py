"""Real side processes that all tests of a process share: starting one takes a second or two of computing."""

from __future__ import annotations

import asyncio
import atexit
import threading
from functools import cache
from typing import Any

from ingestion.jobs.compute_pool import ComputePool

MOST = 2


class LastingSide(ComputePool):
    """Side processes that outlive the ingestions, the homes and the loops that they work for."""

    def __init__(self) -> None:
        """Give them a loop of their own, which no test ends."""
        super().__init__(MOST)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="lasting side", daemon=True).start()
        atexit.register(self._end)

    async def run(self, job: dict[str, Any], *data: bytes) -> Any:
        """As ``ComputePool.run``; whoever is cancelled cancels the job."""
        running = asyncio.run_coroutine_threadsafe(super().run(job, *data), self._loop)
        return await asyncio.wrap_future(running)

    async def aclose(self) -> None:
        """Go on."""

    def _end(self) -> None:
        asyncio.run_coroutine_threadsafe(super().aclose(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)


@cache
def lasting_side() -> LastingSide:
    """The one of this test process."""
    return LastingSide()
