"""Calls that end together, calls that outlive or end before their caller, and tasks that are ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar, overload

from storage.errors import raised_at

_log = logging.getLogger(__name__)

T = TypeVar("T")
Other = TypeVar("Other")


@overload
async def gather_or_cancel(
    first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, Other], /
) -> tuple[T, Other]:
    """Two calls that return different things."""


@overload
async def gather_or_cancel(*calls: Coroutine[Any, Any, T]) -> tuple[T, ...]:
    """Any number of calls that return the same."""


async def gather_or_cancel(*calls: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """What the calls return, in their order; when one fails the others are ended first, and its error raised.

    Of several that fail at once, the first error is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    return tuple(task.result() for task in tasks)


async def finish_within(seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """What the call returns; when the caller is cancelled, the call still has ``seconds`` to end."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=seconds)
        await cancel_and_wait(task)
        raise


class DeadlineCalls:
    """Calls whose callers wait for a bounded time: what is not done by then goes on behind them.

    Such a call is not cancelled, because a statement that waits for SQLite's lock cannot be broken off.
    """

    def __init__(self, seconds: float) -> None:
        """Let callers wait for ``seconds`` at most."""
        self._seconds = seconds
        self._running: set[asyncio.Task[Any]] = set()

    async def wait_for(self, call: Awaitable[T]) -> T:
        """What the call returns.

        Raises:
            TimeoutError: it goes on; how it ends, nobody hears but the log.
        """
        task: asyncio.Task[T] = asyncio.ensure_future(call)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait([task], timeout=self._seconds)
        finally:  # the caller, too, may be cancelled
            if is_late := not task.done():
                task.add_done_callback(_log_failure)
        if is_late:
            raise TimeoutError
        return task.result()

    async def aclose(self) -> None:
        """End the calls that still run."""
        await cancel_and_wait(*self._running)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("what nobody waited for any more failed: %s", raised_at(error))


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until they have ended, whatever they end with.

    A cancellation of the caller that comes meanwhile is raised to the caller; the tasks stay cancelled.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
