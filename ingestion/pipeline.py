"""Pipeline: the lanes of the worker, publishing before reading before embedding."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ingestion.jobs.worker import Lane
from ingestion.publish.publisher import Publisher
from ingestion.reading.full import FullReader
from ingestion.reading.quick import QuickReader
from storage.models import Rung
from storage.queues.reading_queue import ReadingClaim

# Documents that share the embedder, so that a short one need not wait for a long one.
EMBED_CONCURRENCY = 4


def lanes(
    reader: QuickReader,
    full_reader: FullReader,
    publisher: Publisher,
    rung: Rung,
    idle: asyncio.Event,
    *,
    read_workers: int,
) -> list[Lane[Any]]:
    """Return the lanes of ``rung``, the most urgent first.

    Existing full readings are published even for quick: they are searchable, too.

    Args:
        rung: how far to read.
        idle: set while nothing urgent runs.
    """

    def publish(rung: Rung, slots: int, *, is_background: bool) -> Lane[Any]:
        claim, run, fail = partial(publisher.queue.claim, rung), publisher.publish, publisher.fail
        # What the index holds of an unfinished one is unknown, so another worker starts it under a new id.
        release = publisher.queue.retry_under_new_id
        return Lane(f"publish {rung}", claim, run, fail, release, slots, is_background=is_background)

    async def embed(claim: ReadingClaim) -> None:
        await full_reader.read(claim, idle.wait)

    fail, release, retry = reader.fail, reader.queue.release, publisher.release_removal
    claim = partial(reader.queue.claim, Rung.QUICK)
    full = Lane("read full", full_reader.claim, embed, fail, release, EMBED_CONCURRENCY, is_background=True)
    return [
        publish(Rung.QUICK, 2, is_background=False),
        Lane("read quick", claim, reader.read, fail, release, read_workers, is_background=False),
        publish(Rung.FULL, 1, is_background=True),
        *([full] if rung is Rung.FULL else []),
        Lane("remove", publisher.purge.claim, publisher.remove, retry, retry, 1, is_background=True),
    ]
