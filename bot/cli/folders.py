"""``footnote folders``: every watched place with its state, and an admin's word on what may be deleted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from shlex import quote

from bot.cli.json_lines import dump, folder_line
from bot.engines import load_settings, open_stores
from ingestion.wish.mapping import MAP_NAME, check_map
from storage.channels import named_tenant
from storage.folder_status import FolderStatus

MAX_FILES_NAMED = 20
MISTAKEN = (
    "folders.toml holds mistakes, so the old mapping stays in force; footnote folders --check names them"
)


async def list_folders(options: argparse.Namespace) -> int:
    """Print every folder; 1 when one of them has a problem, or the map has mistakes."""
    settings = load_settings()
    mistakes = await asyncio.to_thread(check_map, settings.home / MAP_NAME, settings.inbox)
    async with open_stores(settings) as storage:
        folders = await storage.folders.status()
    if not folders:
        print(f"Nothing was watched yet; footnote serve watches {settings.inbox}", file=sys.stderr)
    for folder in folders:
        print(dump(folder_line(folder)) if options.json else _row(folder))
    if mistakes:
        print(MISTAKEN, file=sys.stderr)
    return 1 if mistakes or any(folder.problem for folder in folders) else 0


async def approve(options: argparse.Namespace) -> int:
    """Let the files that vanished from a folder go, exactly those that were shown."""
    async with open_stores(load_settings()) as storage:
        folder = next((one for one in await storage.folders.status() if one.id == options.id), None)
        if folder is None:
            print(f"footnote: there is no folder {options.id}; see footnote folders", file=sys.stderr)
            return 2
        if not folder.asked:
            print("Nothing in this folder waits for a word.", file=sys.stderr)
            return 0
        _show_pending_deletions(folder)
        if not options.yes and not await _is_confirmed():
            print("Nothing is deleted.", file=sys.stderr)
            return 1
        allowed = await storage.folders.approve(folder.id, [document for document, _ in folder.asked])
    print(f"{allowed} documents go with the next scan, unless their files are back by then.", file=sys.stderr)
    return 0


def _show_pending_deletions(folder: FolderStatus) -> None:
    print(f"Vanished from {folder.location}, which feeds {folder.channel_name}:", file=sys.stderr)
    print(*_names(folder.asked), sep="\n", file=sys.stderr)
    if folder.problem:
        print(folder.problem, file=sys.stderr)


def _names(asked: Sequence[tuple[object, str]]) -> list[str]:
    named = [f"  {file}" for _, file in asked[:MAX_FILES_NAMED]]
    return [*named, f"  and {len(asked) - MAX_FILES_NAMED} more"] if len(asked) > MAX_FILES_NAMED else named


async def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        print("footnote: nobody is here to be asked; add --yes", file=sys.stderr)
        return False
    print("Delete them? Nothing else is deleted. [y/N] ", end="", file=sys.stderr, flush=True)
    return (await _typed_line()).strip().lower() in ("y", "yes")


async def _typed_line() -> str:
    """What somebody types, '' at the end of input; a Ctrl-C ends the wait, which no thread could."""
    typed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        asyncio.get_running_loop().remove_reader(sys.stdin)
    return sys.stdin.readline()


def _row(folder: FolderStatus) -> str:
    name, option = folder.channel_name, _option(folder)
    channel = name if name == option else f"{name} ({option})"
    lines = [
        f"{folder.id:>4}  {state_of(folder):<9} {folder.documents:>6} files  {folder.location} -> {channel}"
    ]
    if folder.problem:
        lines.append(f"{'':<6}{folder.problem}")
    if folder.deleted:
        lines.append(
            f"{'':<6}{folder.deleted} deleted: footnote documents --deleted --channel {quote(option)}"
        )
    return "\n".join(lines)


def _option(folder: FolderStatus) -> str:
    """What ``--channel`` takes for its channel: a name where that says it, else the tenant's."""
    name = folder.channel_name
    return name if named_tenant(name) == folder.channel else folder.channel


def state_of(folder: FolderStatus) -> str:
    """One word: well, asking (an admin), problem, or unwatched (ingested by hand, or mapped no longer)."""
    if folder.asked:
        return "asking"
    if folder.problem:
        return "problem"
    return "well" if folder.watched else "unwatched"
