"""Runs what may hang in threads of its own, so that one slow share never delays another folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ingestion.sources.base import Source

T = TypeVar("T")


async def run_in_thread(job: Callable[[], T]) -> T:
    """The result of ``job``, run in a thread that nobody waits for when the process ends."""
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


async def run_for(source: Source, job: Callable[[], T]) -> T:
    """Run a job of this source: a local disk's in the shared pool, a share's in a thread of its own."""
    if source.is_remote:
        return await run_in_thread(job)
    return await asyncio.to_thread(job)
