"""``footnote serve``: everything in one process, until Ctrl-C; ``footnote console``: the console's URL."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import signal
import sys

from bot.app import Service, open_service
from bot.cli.progress import LOG_INTERVAL_SECONDS, ProgressLog
from bot.console_secret import console_address, read_console_secret
from bot.server_socket import read_server_url
from bot.settings import load_settings
from storage.errors import DatabaseUnavailable, SettingsError, docs_url
from storage.sql.changes import PollGate
from storage.sql.tables import DocumentRow, PublicationRow, ReadingRow

FOREIGN_PROGRESS_SECONDS = 60.0
# From glibc's malloc.h.
M_ARENA_MAX = -8


async def serve(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then shut down cleanly."""
    _share_one_heap()
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


async def print_console_address(options: argparse.Namespace) -> int:
    """Print the URL of the console of the ``serve`` running on the home.

    Raises:
        SettingsError: none runs, or its console is off.
    """
    settings = load_settings()
    url = read_server_url(settings.home)
    if url is None:
        raise SettingsError(f"no `footnote serve` runs on {settings.home}")
    public_url = settings.bot.public_url or url
    if not settings.bot.serves_console(public_url):
        if settings.sign_in:
            print(console_address(public_url, None))
            return 0
        raise SettingsError(f"the console is off (FOOTNOTE_CONSOLE): {docs_url('console.md')}")
    print(console_address(url, read_console_secret(settings.home)))
    return 0


def _share_one_heap() -> None:
    """Make all threads share one malloc arena: per-thread arenas retain each thread's peak memory."""
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


async def _serve(options: argparse.Namespace) -> None:
    settings = load_settings(host=options.host, port=options.port, inbox=options.inbox)
    print("Starting…", file=sys.stderr)
    async with open_service(settings) as service:
        print(*service.startup_banner, sep="\n", flush=True)
        await _report_progress(service)


async def _report_progress(service: Service) -> None:
    """Report reading progress every few seconds while it continues, and when it ends.

    A terminal shows unreadable files by name; elsewhere the log has them.
    """
    progress_log, quarantined = ProgressLog(), 0
    changes, tables = service.stores.database.changes, (DocumentRow, ReadingRow, PublicationRow)
    gate = PollGate(changes, *tables, seconds=FOREIGN_PROGRESS_SECONDS)
    while True:
        if gate.should_poll():
            with contextlib.suppress(DatabaseUnavailable):
                progress = await service.stores.catalog.progress()
                if progress_log.is_watched and progress.quarantined > quarantined:
                    for channel in await service.stores.channels.all():
                        progress_log.name_unreadable(await service.stores.catalog.documents(channel.id))
                quarantined = progress.quarantined
                progress_log.report(progress)
        await asyncio.sleep(LOG_INTERVAL_SECONDS)
