"""``footnote audit``: list, verify and export the audit log."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from bot.cli.home import open_existing_home
from bot.cli.json_output import dump
from bot.settings import load_settings
from bot.terminal import one_line
from storage.sql.audit import AuditEntry, AuditLog


async def list_audit(options: argparse.Namespace) -> int:
    """Print the latest entries of the audit log, oldest first."""
    async with open_existing_home(load_settings()) as stores:
        entries = await AuditLog(stores.database).latest(with_links=options.links)
    for one in entries:
        print(dump(_view(one)) if options.json else _line(one))
    if not entries:
        print("The audit log is empty.", file=sys.stderr)
    return 0


async def export_audit(options: argparse.Namespace) -> int:
    """Print all entries, opened links included, as JSON lines: enough to recompute every digest."""
    async with open_existing_home(load_settings()) as stores:
        async for batch in AuditLog(stores.database).batches():
            print(*(dump(_view(one)) for one in batch), sep="\n")
    return 0


async def verify_audit(options: argparse.Namespace) -> int:
    """Verify the hash chain, and that an earlier digest is part of it; return 1 if not."""
    async with open_existing_home(load_settings()) as stores:
        check = await AuditLog(stores.database).verify(options.digest)
    if check.fault:
        print(
            f"Audit log verification failed: {check.fault}; the {check.entries} entries before it are valid."
        )
        return 1
    print(f"Audit log verified: {check.entries} entries. Digest of the last one: {check.head or '-'}")
    if check.is_known is False:
        print("The given digest is not among them: it is older than these entries, or of another audit log.")
        return 1
    return 0


def _view(entry: AuditEntry) -> dict[str, object]:
    return asdict(entry) | {"at": entry.at.isoformat(timespec="microseconds")}


def _line(entry: AuditEntry) -> str:
    done = "" if entry.is_done else " (refused)"
    said = f"{entry.action}{f' {entry.subject}' if entry.subject else ''}{done}"
    return one_line(f"{entry.at:%Y-%m-%d %H:%M}  {entry.actor}  {entry.channel}  {said}")
