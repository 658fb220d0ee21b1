"""Erases, in the background, what threads have remembered for long enough."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from bot.core.thread_ports import Expiring
from storage.errors import DatabaseUnavailable

INTERVAL_SECONDS = 3600.0
PAUSE_SECONDS = 1.0
"""Between two portions: others want to write meanwhile."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def expiring(memory: Expiring, every: float = INTERVAL_SECONDS) -> AsyncIterator[None]:
    """Let a memory forget at once and then every so many seconds, until the context ends."""
    running = asyncio.create_task(_expiry_loop(memory, every), name="forgetting")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _expiry_loop(memory: Expiring, every: float) -> None:
    while True:
        try:
            erased = await memory.delete_expired()
        except DatabaseUnavailable as error:
            log.warning("what is old enough to be forgotten stays for now: %s", error)
            erased = 0
        await asyncio.sleep(PAUSE_SECONDS if erased else every)
