"""Calls that end together, calls that end before their caller, and tasks that are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, overload

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


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until they have ended, whatever they end with.

    A cancellation of the caller that comes meanwhile is raised to the caller; the tasks stay cancelled.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
