"""Daemon threads for blocking calls that may hang, as on a slow share, without delaying process exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(job: Callable[[], T]) -> T:
    """Run ``job`` in a daemon thread, which does not delay process exit, and return its result."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        if not done.cancelled():
            outcome()

    def work() -> None:
        try:
            outcome = partial(done.set_result, job())
        except Exception as error:  # passed on to the caller
            outcome = partial(done.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="folder", daemon=True).start()
    return await done
