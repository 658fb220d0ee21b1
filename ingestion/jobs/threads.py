"""Choice of threads for a source's work: a share that hangs never delays another folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ingestion.sources.base import Source
from storage.threads import run_in_thread

T = TypeVar("T")


async def run_for(source: Source, job: Callable[[], T]) -> T:
    """Run a job in the shared thread pool for a local source, in a thread of its own for a share."""
    if source.is_remote:
        return await run_in_thread(job)
    return await asyncio.to_thread(job)
