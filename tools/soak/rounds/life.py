"""Life of ingestion, a process started to be killed; and sabotages that the harness must detect.

It is ``serve`` without chat platforms and console, built by the same composition root. A line on standard
input makes it purge and reconcile at once; the end of input stops it cleanly.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch
from uuid import UUID

from bot.bootstrap import build_ingestion, embedding_key, open_home
from bot.cli.log_format import set_up_logging
from bot.cli.main import main as run_command
from bot.settings import load_settings
from ingestion.app import Ingestion
from ingestion.folder_map.folder_map import MAP_NAME
from storage.chat.inbox import Inbox
from storage.index.base import Index, IndexedChunk
from storage.models import Channel, TenantName
from storage.stores import open_embedder, open_index, open_pdf_process


class LosingIndex:
    """Sabotage: an index that loses the last chunk of every write and reports it as complete."""

    def __init__(self, real: Index) -> None:
        self._real = real

    async def write(self, tenant: TenantName, chunks: Sequence[IndexedChunk]) -> None:
        """Write all but the last chunk."""
        await self._real.write(tenant, chunks[:-1])

    async def commit_publication(self, tenant: TenantName, publication: UUID, **counts: Any) -> None:
        """Verify nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


async def live() -> None:
    """Run until the input ends or the process is killed."""
    settings = load_settings()
    set_up_logging(verbose=True, for_machines=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    async with (
        open_home(settings) as stores,
        open_embedder(settings.storage, embedding_key(settings)) as embedder,
        open_index(stores, wait_until_ready=True) as index,
        open_pdf_process(stores, readers=settings.ingestion.read_workers) as pdf,
    ):
        seen: Any = LosingIndex(index) if "SOAK_SABOTAGE" in os.environ else index
        ingestion = build_ingestion(settings, stores, embedder, seen, pdf)
        try:
            await ingestion.start(settings.inbox, settings.home / MAP_NAME)
            await _obey(ingestion)
        finally:
            await ingestion.stop()


async def _obey(ingestion: Ingestion) -> None:
    while await asyncio.to_thread(sys.stdin.readline):
        await ingestion.purge()
        print(await ingestion.reconcile(), flush=True)


def serve_forgetfully(arguments: list[str]) -> int:
    """Run ``serve`` with a sabotage: every tenth question is acknowledged but not stored."""
    keep, number = Inbox.receive, itertools.count(1)

    async def receive(self: Inbox, channel: Channel, **question: Any) -> bool:
        return not next(number) % 10 or await keep(self, channel, **question)

    with patch.object(Inbox, "receive", receive):
        return run_command(arguments)


def live_once(_arguments: list[str]) -> int:
    """Run one life to its end."""
    asyncio.run(live())
    return 0
