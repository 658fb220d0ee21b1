"""``footnote serve``: everything in one process, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys

from bot.service import load_settings
from bot.serving import Service, open_service
from storage.errors import DatabaseUnavailable
from storage.models import Progress

SECONDS_BETWEEN_LOOKS = 1.0


async def serve(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then stop cleanly."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    serving = asyncio.create_task(_serve(options))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not serving.done():
        print("Stopping…", file=sys.stderr)
        serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    return 0


async def _serve(options: argparse.Namespace) -> None:
    settings = load_settings(host=options.host, port=options.port, inbox=options.inbox)
    print("Starting…", file=sys.stderr)
    async with open_service(settings) as service:
        print(*service.greeting, sep="\n", flush=True)
        await _narrate(service)


async def _narrate(service: Service) -> None:
    """Say on stderr how far reading has come, whenever that changed."""
    said: Progress | None = None
    while True:
        progress = await _progress(service)
        if progress and progress.files and progress != said:
            print(describe(progress), file=sys.stderr)
            said = progress
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


async def _progress(service: Service) -> Progress | None:
    """How far everything has come; None while the database does not tell."""
    try:
        return await service.storage.catalog.progress(None)
    except DatabaseUnavailable:
        return None


def describe(progress: Progress) -> str:
    """``6 files: 4 answer by words (180 pages), 2 with vectors; 1 could not be read``."""
    text = (
        f"{progress.files} files: {progress.files_quick} answer by words ({progress.pages_quick} pages), "
        f"{progress.files_full} with vectors"
    )
    return f"{text}; {progress.quarantined} could not be read" if progress.quarantined else text
