"""Structured concurrency helpers: gather with cancellation, grace periods, deadlines, retries, renewals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar, overload

from storage.errors import LeaseLost, raised_at

_log = logging.getLogger(__name__)

T = TypeVar("T")
Other = TypeVar("Other")


@overload
async def gather_or_cancel(
    first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, Other], /
) -> tuple[T, Other]:
    """Run two calls with different return types."""


@overload
async def gather_or_cancel(*calls: Coroutine[Any, Any, T]) -> tuple[T, ...]:
    """Run any number of calls with one return type."""


async def gather_or_cancel(*calls: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """Return the results in order; if a call fails, cancel the others first, then raise its error.

    If several fail at once, the first error is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    return tuple(task.result() for task in tasks)


async def finish_within(seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """Return the call's result; if the caller is cancelled, let the call run for up to ``seconds`` more."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=seconds)
        await cancel_and_wait(task)
        raise


class DeadlineCalls:
    """Runs calls whose callers wait for a limited time; after that they continue in the background.

    They are not cancelled, because a statement that waits for SQLite's lock cannot be interrupted.
    """

    def __init__(self, seconds: float) -> None:
        """Limit the wait of each caller to ``seconds``."""
        self._seconds = seconds
        self._running: set[asyncio.Task[Any]] = set()

    async def wait_for(self, call: Awaitable[T]) -> T:
        """Return the result of the call.

        Raises:
            TimeoutError: the call continues in the background; a later failure is only logged.
        """
        task: asyncio.Task[T] = asyncio.ensure_future(call)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait([task], timeout=self._seconds)
        finally:  # the caller may be cancelled, too
            if is_late := not task.done():
                task.add_done_callback(_log_failure)
        if is_late:
            raise TimeoutError
        return task.result()

    async def aclose(self) -> None:
        """Cancel the calls that are still running."""
        await cancel_and_wait(*self._running)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("background call failed after its caller's timeout: %s", raised_at(error))


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until they have ended, ignoring their results.

    A cancellation of the caller is raised after that; the tasks stay cancelled.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def retry(
    call: Callable[[], Awaitable[T]], pause: Callable[[Exception, int], float | None], tries: int = 0
) -> T:
    """Return the result of ``call``, repeated after errors; ``pause`` gets each error and its number.

    The error is raised if it has no pause, or is that of the last of ``tries`` (0: no limit).
    """
    tried = 0
    while True:
        try:
            return await call()
        except Exception as error:
            tried += 1
            seconds = pause(error, tried) if tried != tries else None
            if seconds is None:
                raise
        await asyncio.sleep(seconds)


def doubled(tries: int, max_seconds: float) -> float:
    """Return an exponential backoff: 1 s after the first try, up to ``max_seconds``."""
    return min(2.0 ** min(tries - 1, 10), max_seconds)


@asynccontextmanager
async def keep_leased(seconds: float, renew: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Renew a lease three times per period while the block runs; cancel the block once the lease is lost.

    On exit, no renewal is in flight.
    """
    block = asyncio.current_task()

    async def keep() -> None:
        while block is not None:
            await asyncio.sleep(seconds / 3)
            try:
                await renew()
            except LeaseLost:
                block.cancel()
                return
            except Exception as error:  # the next renewal may succeed, and the lease is not lost yet
                _log.warning("lease renewal failed: %s", raised_at(error))

    renewing = asyncio.create_task(keep())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait((renewing,))
