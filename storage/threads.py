"""Runs what may hang in threads of its own: a slow share delays nothing else, nor the process's end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(job: Callable[[], T]) -> T:
    """Return the result of ``job``, run in a thread that nobody waits for when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        if not done.cancelled():
            outcome()

    def work() -> None:
        try:
            outcome = partial(done.set_result, job())
        except Exception as error:  # handed to whoever waits
            outcome = partial(done.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="folder", daemon=True).start()
    return await done
