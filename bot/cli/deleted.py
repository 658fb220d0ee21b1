"""``footnote documents --deleted`` and ``footnote restore``: what was deleted, while it can come back."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path, PurePosixPath
from shlex import quote
from uuid import uuid4

from bot.cli.json_lines import deleted_line, dump
from bot.engines import Settings, Stores, load_settings, open_stores
from storage.errors import BlobsUnavailable, SettingsError
from storage.folder_status import DeletedDocument


async def list_deleted(options: argparse.Namespace) -> int:
    """Print what was deleted from a channel and is still kept."""
    if options.where:
        raise SettingsError("--where narrows what is there; --deleted lists what is not")
    settings = load_settings()
    async with open_stores(settings) as storage:
        channel = await storage.channels.by_name(options.channel)
        grace = timedelta(seconds=settings.ingestion.delete_grace_seconds)
        documents = await storage.folders.deleted(channel.id)
        for document in documents:
            until = document.deleted_at + grace
            if options.json:
                print(dump(deleted_line(document, channel.name, until)))
            else:
                print(f"deleted {document.deleted_at:%Y-%m-%d %H:%M}, kept until {until:%Y-%m-%d %H:%M} UTC")
                print(f"    {document.file}, from {document.location}")
    if documents:
        again = f"footnote restore FILE --channel {quote(options.channel)} --to DIR"
        print(f"Put a file back into its folder to have it again; {again} saves a copy.", file=sys.stderr)
    return 0


async def restore(options: argparse.Namespace) -> int:
    """Save a deleted PDF beside the watched folders, for an admin to put back."""
    settings = load_settings()
    async with open_stores(settings) as storage:
        channel = await storage.channels.by_name(options.channel)
        found = [one for one in await storage.folders.deleted(channel.id) if one.file == options.file]
        if not found:
            print("footnote: nothing of this name is kept; see footnote documents --deleted", file=sys.stderr)
            return 1
        await _refuse_watched(options.to, storage, settings)
        saved = await asyncio.to_thread(_save, storage.blobs.path(found[0].sha256), options.to, found[0])
    print(saved)
    print(f"Put it back into {found[0].location} as {found[0].file}, and it answers again.", file=sys.stderr)
    return 0


async def _refuse_watched(target: Path, storage: Stores, settings: Settings) -> None:
    """We never write into a watched folder.

    Raises:
        SettingsError: the target lies in one.
    """
    watched = [folder.location for folder in await storage.folders.watched()]
    if _is_beneath(target, [str(settings.inbox), *watched]):
        raise SettingsError(
            "--to lies in a watched folder, where this program never writes: choose another one"
        )


def _is_beneath(target: Path, places: Iterable[str]) -> bool:
    resolved = target.resolve()
    return any(resolved.is_relative_to(Path(place).resolve()) for place in places if "://" not in place)


def _save(blob: Path, folder: Path, document: DeletedDocument) -> Path:
    """Copy a content under its old name; what is there already is never replaced.

    Raises:
        SettingsError: there is a file of this name.
        BlobsUnavailable: the content cannot be read, or the folder not be written.
    """
    target = folder / PurePosixPath(document.file).name
    part = folder / f".{uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(blob, part)
        target.hardlink_to(part)
    except FileExistsError:
        raise SettingsError(f"{target} is there already: choose another folder") from None
    except OSError as error:
        raise BlobsUnavailable(f"{target} cannot be saved: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return target
