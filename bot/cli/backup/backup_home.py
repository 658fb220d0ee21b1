"""``footnote backup`` and ``footnote restore URL``: back up and restore a whole home."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

from bot.bootstrap import open_ingestion
from bot.cli.home import is_confirmed, open_existing_home
from bot.cli.json_output import dump
from bot.cli.progress import CountLine
from bot.core.models import LOCAL_ASKER
from bot.server_socket import read_server_url
from bot.settings import Settings, load_settings
from storage.backup.destination import BackupDestination
from storage.backup.home_backup import HomeBackup
from storage.backup.home_restore import HomeRestore, read_backup
from storage.backup.manifest import BackupManifest
from storage.errors import SettingsError
from storage.settings import AwsSettings, load
from storage.sql.audit import BACK_UP, AuditedAction, AuditLog
from storage.stores import open_index, open_stores

PARTLY = 1
NOTHING_DONE = 1


async def backup(options: argparse.Namespace) -> int:
    """Write a backup, with or without a running service; return 1 if a damaged file was left out.

    Raises:
        BackupError: the target is full, unreachable or denies access.
    """
    settings = load_settings()
    place = BackupDestination(options.url, load(AwsSettings))
    async with open_existing_home(settings) as stores:
        report = await HomeBackup(stores, place, CountLine().show).write(replace=options.replace)
        done = AuditedAction(LOCAL_ASKER, BACK_UP, "", report.digest, is_done=not report.left_out)
        await AuditLog(stores.database).record(done)
    if options.json:
        print(dump(asdict(report)))
    else:
        _say_left_out(report.left_out)
        print(
            f"{report.tables} tables and {report.files} files, {report.bytes / 1e6:.1f} MB in total; "
            f"{report.copied} new, {report.dropped} removed; {report.seconds:g} s"
        )
        print(f"Digest, for `footnote restore`: {report.digest}")
    return PARTLY if report.left_out else 0


async def restore(options: argparse.Namespace) -> int:
    """Restore a backup and publish its documents; return 1 if the backup had left something out.

    Raises:
        SettingsError: the home, the database or the index is not empty, ``footnote serve`` runs, or the
            backup is not the one whose digest was given.
        DamagedBackup: it is unfinished or damaged.
    """
    settings = load_settings()
    if read_server_url(settings.home) is not None:
        raise SettingsError("`footnote serve` runs on this home: stop it first")
    place = BackupDestination(options.url, load(AwsSettings))
    manifest = await asyncio.to_thread(read_backup, place)
    if options.digest not in (None, manifest.digest):
        raise SettingsError(
            f"the digest does not match: this backup has {manifest.digest}; nothing was restored"
        )
    line = CountLine()
    restoring = HomeRestore(settings.storage, place, line.show)
    if not options.force:
        await restoring.require_empty()
        await _require_empty_index(settings)
    if options.digest is None and not await _is_known(manifest):
        return NOTHING_DONE
    report = await restoring.restore(manifest)
    async with open_ingestion(load_settings()) as (_, ingestion):
        await ingestion.rebuild_index(partial(line.show, "readings published"))
    if options.json:
        print(dump(asdict(report)))
    else:
        _say_left_out(report.left_out)
        if report.settings:
            names = ", ".join(report.settings)
            print(f"Restored but not active: review it and remove .restored from its name: {names}")
        if report.replaced:
            print(f"Previous contents of the home: {report.replaced}")
        print(f"{report.rows} rows and {report.files} files as of {report.made_at}; {report.seconds:g} s")
    return PARTLY if report.left_out else 0


async def _is_known(manifest: BackupManifest) -> bool:
    """Ask to confirm the backup's digest: a forged backup would decide who sees what."""
    said = f"The backup of {manifest.home}, {manifest.made_at}, with the digest\n{manifest.digest}"
    print(said, file=sys.stderr)
    return await is_confirmed("Is it the digest that `footnote backup` printed? [y/N] ", instead="--digest")


async def _require_empty_index(settings: Settings) -> None:
    """Refuse an external index that is not empty: reconciling would remove another home's readings.

    Raises:
        SettingsError: the index has tenants.
    """
    if settings.storage.weaviate_url is None:
        return
    async with open_stores(settings.storage) as stores, open_index(stores) as index:
        if await index.tenants():
            raise SettingsError(
                "the index at WEAVIATE_URL is not empty: it may be another home's. Choose an empty one, or "
                "give --force if it is this home's alone"
            )


def _say_left_out(left_out: Mapping[str, str]) -> None:
    for name, reason in left_out.items():
        print(f"left out {name}: {reason}", file=sys.stderr)
