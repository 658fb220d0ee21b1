"""Erases, in the background, what threads have remembered for long enough."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from bot.core.thread_ports import Forgetful
from storage.errors import DatabaseUnavailable

EVERY_SECONDS = 3600.0
PAUSE_SECONDS = 1.0
"""Between two portions: others want to write meanwhile."""

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def forgetting(memory: Forgetful, every: float = EVERY_SECONDS) -> AsyncIterator[None]:
    """Let a memory forget at once and then every so many seconds, until the context ends."""
    running = asyncio.create_task(_forget_again_and_again(memory, every), name="forgetting")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _forget_again_and_again(memory: Forgetful, every: float) -> None:
    while True:
        try:
            erased = await memory.forget()
        except DatabaseUnavailable as error:
            log.warning("what is old enough to be forgotten stays for now: %s", error)
            erased = 0
        await asyncio.sleep(PAUSE_SECONDS if erased else every)
