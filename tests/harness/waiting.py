"""Waiting for what other tasks and processes do: they tell nobody, so it is polled, and must come in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

# Seconds; far more than anything takes on a machine that has little else to do.
PATIENCE = 300.0
# Seconds between two looks that start a program each.
BY_COMMAND = 0.5


class Clock:
    """Seconds that pass when a test says so."""

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
    """What ``look`` returns, once that is something.

    Args:
        look: asked again and again; None, False and whatever is empty mean "not yet".
        seconds: how long to wait.
        every: seconds between two looks.
        log: what to show when it does not come.

    Raises:
        AssertionError: it did not come in time.
    """
    end = time.monotonic() + seconds
    while not (found := await look()):
        assert time.monotonic() < end, f"it did not happen in time: {log()}"
        await asyncio.sleep(every)
    return found


async def until_true(is_so: Callable[[], object], log: Callable[[], str] = str) -> None:
    """Wait as ``until`` does for what can be seen at once."""

    async def look() -> object:
        return is_so()

    await until(look, every=0.02, log=log)


def ready(value: Found) -> asyncio.Future[Found]:
    """What need not be waited for; made inside a running loop."""
    future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
