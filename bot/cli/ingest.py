"""``footnote ingest``: one folder or file, once, with progress, until it answers."""

from __future__ import annotations

import argparse
import sys

from bot.cli.progress import ProgressLine
from bot.engines import load_settings
from bot.service import open_ingestion
from ingestion.app import IngestResult
from storage.models import Rung


async def ingest(options: argparse.Namespace) -> int:
    """Ingest and report; 1 when something was quarantined."""
    wait = Rung(options.wait)
    if options.channel is None and options.path.is_file():
        print("footnote: name the channel that gets this file with --channel", file=sys.stderr)
        return 2
    with ProgressLine(wait) as progress:
        async with open_ingestion(load_settings()) as (storage, ingestion):
            if options.channel is None:
                result = await ingestion.ingest_root(options.path, wait, progress.show)
            else:
                channel = await storage.channels.ensure_named(options.channel)
                result = await ingestion.ingest(options.path, channel, wait, progress.show)
    return _report(result)


def _report(result: IngestResult) -> int:
    for loose in result.skipped:
        print(f"skipped {loose}: not in a channel folder", file=sys.stderr)
    for file, reason in result.quarantined:
        print(f"could not read {file}: {reason}", file=sys.stderr)
    print(f"{result.live} of {result.files} files answer", file=sys.stderr)
    return 1 if result.quarantined else 0
