"""Polling for effects of other tasks and processes, which send no notification, with a timeout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

# Seconds; far more than anything takes on a machine that is not overloaded.
PATIENCE = 300.0
# Polling interval in seconds if each poll starts a program.
BY_COMMAND = 1.0


class Clock:
    """A manual clock in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def until(
    look: Callable[[], Awaitable[Found | None]],
    *,
    seconds: float = PATIENCE,
    every: float = 0.1,
    log: Callable[[], str] = str,
) -> Found:
    """Poll ``look`` until it returns something true; return that.

    Args:
        look: polled; None, False and empty values mean "not yet".
        seconds: timeout.
        every: seconds between two polls.
        log: text for the error message.
    Raises:
        AssertionError: timeout.
    """
    end = time.monotonic() + seconds
    while not (found := await look()):
        assert time.monotonic() < end, f"it did not happen in time: {log()}"
        await asyncio.sleep(every)
    return found


async def until_true(is_so: Callable[[], object], log: Callable[[], str] = str) -> None:
    """Poll a synchronous condition; see ``until``."""

    async def look() -> object:
        return is_so()

    await until(look, every=0.02, log=log)


def ready(value: Found) -> asyncio.Future[Found]:
    """Return a completed future; needs a running loop."""
    future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
