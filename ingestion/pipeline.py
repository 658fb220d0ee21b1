"""The kinds of steps and their order: publish before read before embed, urgent before patient."""

from __future__ import annotations

import asyncio
from typing import Any

from ingestion.jobs.worker import Lane
from ingestion.publish.publisher import Publisher
from ingestion.reading.full import FullReader
from ingestion.reading.quick import QuickReader
from storage.models import Rung
from storage.queues.reading_queue import ReadingClaim

EMBED_CONCURRENCY = 4
"""Documents that take turns at the embedder, so that a short one need not wait for a long one."""


class Steps:
    """Makes the lanes of a worker."""

    def __init__(
        self, reader: QuickReader, full_reader: FullReader, publisher: Publisher, *, read_workers: int
    ) -> None:
        """Read ``read_workers`` PDFs at the same time."""
        self._reader = reader
        self._full_reader = full_reader
        self._publisher = publisher
        self._read_workers = read_workers

    def lanes(self, rung: Rung, quiet: asyncio.Event) -> list[Lane[Any]]:
        """Everything that has to be done for ``rung``, the most urgent first.

        Full readings that are there already are published even for quick, for they answer too.
        ``quiet`` is set while nothing urgent runs.
        """
        reader, full_reader, publisher = self._reader, self._full_reader, self._publisher
        fail, let_go, keep = reader.fail, reader.let_go, publisher.keep_retired
        reading = Lane(reader.claim_quick, reader.read, fail, let_go, self._read_workers, is_background=False)
        lanes = [self._publishing(Rung.QUICK, slots=2), reading, self._publishing(Rung.FULL, slots=1)]
        if rung is Rung.FULL:

            async def embed(claim: ReadingClaim) -> None:
                await full_reader.read(claim, quiet.wait)

            lanes.append(Lane(full_reader.claim, embed, fail, let_go, EMBED_CONCURRENCY, is_background=True))
        lanes.append(Lane(publisher.claim_retired, publisher.remove, keep, keep, 1, is_background=True))
        return lanes

    def _publishing(self, rung: Rung, slots: int) -> Lane[Any]:
        publisher, is_background = self._publisher, rung is Rung.FULL
        claim = publisher.claim_full if is_background else publisher.claim_quick
        return Lane(
            claim, publisher.publish, publisher.fail, publisher.let_go, slots, is_background=is_background
        )
