"""How an ingestion is told what to watch."""

from __future__ import annotations

from bot.service import Settings
from ingestion.app import Ingestion


async def start(ingestion: Ingestion, settings: Settings) -> None:
    """Watch the home's inbox."""
    await ingestion.start(settings.inbox)
