"""Cancelling tasks and waiting for their end."""

from __future__ import annotations

import asyncio

import pytest

from storage.task_group import cancel_and_wait


async def test_cancelled_tasks_end_without_raising() -> None:
    """Covers a cancelled task and one that failed before."""

    async def fail() -> None:
        raise ValueError

    failing, sleeping = asyncio.create_task(fail()), asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    await cancel_and_wait(failing, sleeping)
    assert isinstance(failing.exception(), ValueError)
    assert sleeping.cancelled()


async def test_a_caller_cancelled_while_waiting_is_cancelled() -> None:
    """Shows that waiting does not swallow the caller's own cancellation."""
    is_ending, may_end = asyncio.Event(), asyncio.Event()

    async def end_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_ending.set()
            await may_end.wait()

    task = asyncio.create_task(end_slowly())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(cancel_and_wait(task))
    await is_ending.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task.done()
