"""Periodic work of `serve` continues after a failed round."""

from __future__ import annotations

import asyncio

import pytest
from harness.waiting import PATIENCE

from bot.app import run_every
from storage.errors import BlobsUnavailable


async def test_an_unexpected_error_is_logged_and_work_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Shows that neither an outage nor a bug ends the work, and that the error is logged by its type."""
    faults = [BlobsUnavailable("away"), ValueError("badly formed"), None]
    done = asyncio.Event()

    async def work() -> None:
        if fault := faults.pop(0):
            raise fault
        done.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE), run_every(work, 0.0, "local copies"):
        await done.wait()
    (said,) = caplog.messages
    assert "local copies" in said
    assert "ValueError" in said
