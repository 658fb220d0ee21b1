"""``footnote documents``, ``channels``, ``metadata`` and ``recover``: list, correct and recover documents.

``--where FIELD=VALUE`` filters documents by metadata, kind and date, and takes ranges; ``--deleted`` lists
and ``recover`` saves deleted PDFs that are still retained; ``metadata`` also takes an admin's corrections.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path, PurePosixPath
from shlex import quote
from uuid import UUID, uuid4

from bot.answers.understanding.channel_documents import document_day
from bot.answers.understanding.where_filters import where_filter
from bot.cli.home import channel_option, chosen_channel, open_existing_home
from bot.cli.json_output import channel_line, deleted_line, document_line, dump
from bot.core.models import LOCAL_ASKER
from bot.settings import load_settings
from bot.terminal import one_line
from storage.documents.corrections import Corrections
from storage.errors import BlobsUnavailable, SettingsError
from storage.folders.folder_status import DeletedDocument
from storage.models import METADATA_FIELDS, DocumentStatus, metadata_line
from storage.sql.audit import AuditedAction
from storage.stores import Stores

NO_CHANNELS = (
    "There is no channel yet. Invite the bot to a channel, or mention it there if it is in already; "
    "`footnote ingest DIR --channel NAME` creates a local one."
)


def read_where(given: Sequence[str]) -> dict[str, str]:
    """Parse ``FIELD=VALUE`` filters.

    Raises:
        SettingsError: unknown field, invalid or missing value, or a field with two values.
    """
    where: dict[str, str] = {}
    for name, _, value in (one.partition("=") for one in given):
        if where.setdefault(name.strip(), value.strip()) != value.strip():
            raise SettingsError(f"--where {name}: a field can be asked for once")
    return checked_where(where)


def checked_where(where: Mapping[str, str]) -> dict[str, str]:
    """Return the filters after validating every field and value.

    Raises:
        SettingsError: unknown field or invalid value.
    """
    for name, value in where.items():
        where_filter(name, value)
    return dict(where)


async def documents_where(
    stores: Stores, channel_id: int, where: Mapping[str, str]
) -> frozenset[UUID] | None:
    """Return the documents of a channel that match all filters, None without filters."""
    if not where:
        return None
    documents = await stores.catalog.documents(channel_id)
    return frozenset(one.document for one in documents if _fits(one, where))


def _fits(document: DocumentStatus, where: Mapping[str, str]) -> bool:
    return all(where_filter(name, value)(document) for name, value in where.items())


async def list_documents(options: argparse.Namespace) -> int:
    """Print the channel's documents; without ``--json``, deleted ones are only counted."""
    where = read_where(options.where)
    async with open_existing_home(load_settings()) as stores:
        channel = await chosen_channel(stores, options.channel)
        documents = [one for one in await stores.catalog.documents(channel.id) if _fits(one, where)]
    kept = [one for one in documents if options.json or one.state != "deleted"]
    for one in kept:
        print(dump(document_line(one)) if options.json else _document_row(one))
    if not kept and not options.json:
        print(f"This channel has no {'such ' if where else ''}documents.", file=sys.stderr)
    if gone := len(documents) - len(kept):
        option = quote(channel_option(channel.name, channel.tenant))
        print(f"{gone} deleted: footnote documents --deleted --channel {option}", file=sys.stderr)
    return 0


async def list_channels(options: argparse.Namespace) -> int:
    """Print all channels, and mistakes in their glossary."""
    async with open_existing_home(load_settings()) as stores:
        channels, library = await stores.channels.all(), await stores.channels.direct_library()
        glossary = await stores.glossary.current()
    for channel in channels:
        terms = len(glossary.of(channel))
        row = f"{channel.name:<24} {channel.platform:<6} {channel.tenant}"
        row += f"  {terms} terms in the glossary" if terms else ""
        row += "  direct chat" if channel.is_direct else ""
        row += "  searched by direct chats" if library and channel == library.channel else ""
        print(dump(channel_line(channel, terms)) if options.json else one_line(row))
    for mistake in (*stores.glossary.mistakes, *glossary.unknown(channels)):
        print(mistake, file=sys.stderr)
    if not channels:
        print(NO_CHANNELS, file=sys.stderr)
    return 0


def _document_row(document: DocumentStatus) -> str:
    state = f"{document.state} ({document.rung.value})" if document.rung else document.state
    pages = f"{document.pages} p." if document.pages else ""
    row = f"{state:<14} {pages:>8}  {document.file}"
    reason = document.reason or ""
    counted = document_day(document.metadata, document.arrived_at)
    undated = f"No date found; added {counted.day}" if counted and counted.is_arrival else ""
    said = (metadata_line(document.metadata), undated, reason[:1].upper() + reason[1:])
    notes = [note for note in said if note]
    return "\n".join(map(one_line, [row, *(f"{'':<14} {'':>8}  {note}" for note in notes)]))


async def show_metadata(options: argparse.Namespace) -> int:
    """Apply corrections, then print every field with its page.

    Raises:
        SettingsError: no such file or field, invalid value, or ``--set`` without ``=``.
    """
    changes = dict(map(_change, options.set)) | dict.fromkeys(options.undo)
    async with open_existing_home(load_settings()) as stores:
        channel = await chosen_channel(stores, options.channel)
        if changes:
            action = AuditedAction(LOCAL_ASKER, "correct", channel.tenant)
            await Corrections(stores.database).correct(channel.id, options.file, changes, action)
        documents = await stores.catalog.documents(channel.id)
    found = [one for one in documents if one.file == options.file and one.state != "deleted"]
    if not found:
        raise SettingsError(f"the channel has no file {options.file}; see footnote documents")
    print(f"{found[0].file}: {found[0].title}")
    for name in METADATA_FIELDS:
        row = f"  {name:<14} "
        if one := found[0].metadata.get(name):
            row += f"{one.value}  ({'corrected' if one.page is None else f'page {one.page}'})"
        print(row.rstrip())
    print("Correct a field with --set FIELD=VALUE; revert with --undo FIELD", file=sys.stderr)
    return 0


def _change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--set {text}: write FIELD=VALUE, or FIELD= if the document has none")
    return name.strip(), value.strip()


async def list_deleted(options: argparse.Namespace) -> int:
    """Print a channel's deleted documents that are still retained."""
    if options.where:
        raise SettingsError("--where cannot be combined with --deleted")
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        channel = await chosen_channel(stores, options.channel)
        grace = timedelta(seconds=settings.ingestion.delete_grace_seconds)
        documents = await stores.folders.deleted(channel.id)
        for document in documents:
            until = document.deleted_at + grace
            if options.json:
                print(dump(deleted_line(document, channel.name, until)))
            else:
                print(
                    f"deleted {document.deleted_at:%Y-%m-%d %H:%M}, retained until {until:%Y-%m-%d %H:%M} UTC"
                )
                print(one_line(f"    {document.file}, from {document.location}"))
    if documents:
        option = channel_option(channel.name, channel.tenant)
        again = f"footnote recover FILE --channel {quote(option)} --to DIR"
        print(f"Put a file back into its folder to restore it; {again} saves a copy.", file=sys.stderr)
    return 0


async def recover(options: argparse.Namespace) -> int:
    """Save a deleted PDF outside the watched folders, for an admin to put back.

    Raises:
        SettingsError: the target is in a watched folder, or a file of this name exists.
    """
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        channel = await chosen_channel(stores, options.channel)
        found = [one for one in await stores.folders.deleted(channel.id) if one.file == options.file]
        if not found:
            print(
                "footnote: no deleted document of this name; see footnote documents --deleted",
                file=sys.stderr,
            )
            return 1
        watched = [str(settings.inbox), *(folder.location for folder in await stores.folders.watched())]
        if _is_beneath(options.to, watched):
            raise SettingsError(
                "--to is in a watched folder, where this program never writes: choose another one"
            )
        blob = await stores.blobs.fetch(found[0].sha256)
        saved = await asyncio.to_thread(_save, blob, options.to, found[0])
    print(saved)
    print(
        f"Put it back into {found[0].location} as {found[0].file} to make it searchable again.",
        file=sys.stderr,
    )
    return 0


def _is_beneath(target: Path, places: Sequence[str]) -> bool:
    resolved = target.resolve()
    return any(resolved.is_relative_to(Path(place).resolve()) for place in places if "://" not in place)


def _save(blob: Path, folder: Path, document: DeletedDocument) -> Path:
    """Copy a blob under its old file name, never overwriting.

    Raises:
        SettingsError: a file of this name exists.
        BlobsUnavailable: the blob cannot be read, or the folder cannot be written.
    """
    target = folder / PurePosixPath(document.file).name
    part = folder / f".{uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(blob, part)
        target.hardlink_to(part)  # unlike a rename, fails if the target exists
    except FileExistsError:
        raise SettingsError(f"{target} already exists: choose another folder") from None
    except OSError as error:
        raise BlobsUnavailable(f"{target} cannot be saved: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return target
