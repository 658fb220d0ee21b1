"""``footnote erase``: erases a document, a channel or a person's data everywhere, for good."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from functools import partial
from typing import Any

from bot.bootstrap import open_ingestion
from bot.cli.home import chosen_channel, is_confirmed, open_existing_home
from bot.cli.json_output import dump
from bot.cli.progress import CountLine
from bot.core.models import LOCAL_ASKER
from bot.server_socket import read_server_url
from bot.settings import load_settings
from storage.erasure.eraser import SETTLE_SECONDS, ErasureReport
from storage.erasure.targets import ErasureTarget, channel_target, document_target, person_target
from storage.errors import SettingsError
from storage.sql.audit import AuditedAction
from storage.stores import Stores, make_eraser, open_index

FILES = {
    "blobs": "stored PDFs",
    "readings": "readings",
    "pictures": "rendered pages and figures",
    "publications": "readings in the index",
    "reindexed": "other documents to index again; until then, questions there get the reply “try again”",
}
KEPT_WORDS = "Words stay in Weaviate's files, because readings of the channel's documents are missing"
KEPT_CONTENTS = "Blobs stay, because other documents have the same content"


async def erase(options: argparse.Namespace) -> int:
    """Show what would be erased, ask, erase and report.

    Raises:
        SettingsError: no such document, channel or person, or conflicting options.
        StillInFolder: the next scan would bring it back.
    """
    settings = load_settings()
    async with open_existing_home(settings) as stores, open_index(stores) as index:
        target = await _target(stores, options)
        is_served = read_server_url(settings.home) is not None
        eraser = make_eraser(stores, index, SETTLE_SECONDS if is_served else 0)
        rebuilds_index = not options.keep_index
        preview = await eraser.preview(target, rebuilds_index=rebuilds_index)
        if options.dry_run:
            _print(preview, options, is_done=False)
            return 0
        if not options.yes:
            _print(preview, options, is_done=False, to=sys.stderr)
            if not await is_confirmed("Erase it permanently? This cannot be undone. [y/N] "):
                print("Nothing was erased.", file=sys.stderr)
                return 1
        tenant = target.channel.tenant if target.channel else ""
        action = AuditedAction(LOCAL_ASKER, "erase", tenant, target.subject)
        report = await eraser.erase(target, action, rebuilds_index=rebuilds_index)
    _print(report, options, is_done=True)
    if report.reindexed and not is_served:
        async with open_ingestion(settings) as (_, ingestion):
            await ingestion.rebuild_index(partial(CountLine().show, "readings published"))
    return 0


async def _target(stores: Stores, options: argparse.Namespace) -> ErasureTarget:
    if options.person:
        if options.document or options.channel:
            raise SettingsError(
                "--person cannot be combined with --document or --channel: it covers every channel"
            )
        return await person_target(stores.database, options.person)
    if options.document:
        channel = await chosen_channel(stores, options.channel)
        return await document_target(stores.database, channel, options.document)
    if not options.channel:
        raise SettingsError(
            "say what to erase: --document FILE --channel NAME, --channel NAME or --person ID"
        )
    return await channel_target(stores.database, await chosen_channel(stores, options.channel))


def _print(report: ErasureReport, options: argparse.Namespace, *, is_done: bool, to: Any = None) -> None:
    if options.json and to is None:
        print(dump(asdict(report) | {"is_done": is_done}))
        return
    print("Erased:" if is_done else "Would erase:", *_lines(report), sep="\n", file=to)
    if is_done:
        if report.messages:
            print(f"{report.messages} answers in chats will be replaced by a notice", file=to)
        print(f"{report.seconds:g} s", file=to)


def _lines(report: ErasureReport) -> list[str]:
    """Return lines of what is erased, and of what remains."""
    counts = {FILES[name]: getattr(report, name) for name in FILES} | {
        f"rows of {table}": count for table, count in sorted(report.rows.items())
    }
    goes = [f"{count:>8}  {what}" for what, count in counts.items() if count]
    stays = {KEPT_WORDS: report.hindering, KEPT_CONTENTS: report.shared}
    return [
        *(goes or ["          nothing found"]),
        *(f"{what}: {count}" for what, count in stays.items() if count),
    ]
