"""``footnote ingest``: reads a folder or file once, with progress, until it is searchable."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from bot.bootstrap import open_ingestion
from bot.cli.progress import ProgressLine
from bot.settings import load_settings
from ingestion.app import IngestResult
from storage.chat.channels import require_channel_name
from storage.models import Rung

_OCR_ADVICE = "it is read while `footnote serve` runs, or now by this command with --wait full"


async def ingest(options: argparse.Namespace) -> int:
    """Ingest and report; return 1 if something was quarantined.

    Raises:
        UnknownChannel: invalid channel name; nothing was created.
    """
    wait = Rung(options.wait)
    if options.channel is None and options.path.is_file():
        print("footnote: name the channel that gets this file with --channel", file=sys.stderr)
        return 2
    if options.channel is not None:
        require_channel_name(options.channel)
    try:
        result = await _ingest(options.path, options.channel, wait)
    except asyncio.CancelledError:
        print("Interrupted; run the same command again to continue.", file=sys.stderr)
        raise
    return _report(result, options.path)


async def _ingest(path: Path, channel_name: str | None, wait: Rung) -> IngestResult:
    with ProgressLine(wait) as progress:
        async with open_ingestion(load_settings()) as (stores, ingestion):
            if channel_name is None:
                return await ingestion.ingest_root(path, wait, progress.show)
            channel = await stores.channels.ensure_named(channel_name)
            return await ingestion.ingest(path, channel, wait, progress.show)


def _report(result: IngestResult, path: Path) -> int:
    for loose in result.skipped:
        print(f"skipped {loose}: not in a channel folder; --channel names one", file=sys.stderr)
    for file, reason in result.quarantined:
        print(f"could not read {file}: {reason}", file=sys.stderr)
    for file in result.waiting_for_ocr:
        print(f"{file} is a scan and waits for OCR: {_OCR_ADVICE}", file=sys.stderr)
    if not result.files:
        print(f"There is no PDF to read in {path}.", file=sys.stderr)
        return 0
    print(f"{result.live} of {result.files} files are searchable", file=sys.stderr)
    return 1 if result.quarantined else 0
