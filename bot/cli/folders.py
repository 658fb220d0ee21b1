"""``footnote folders`` and ``footnote reconcile``: watched folders, their state, and approval of deletions.

``--dry-run`` prints what would happen and changes nothing; ``reconcile`` compares SQL, index and disk,
repairs differences and prints the repairs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from bot.bootstrap import open_home, open_ingestion
from bot.cli.home import channel_option, is_confirmed, open_existing_home
from bot.cli.json_output import dump, folder_line, inbox_line
from bot.core.models import LOCAL_ASKER
from bot.platforms.registry import loopback_links_warning
from bot.public_links import links_url
from bot.settings import Settings, load_settings
from bot.terminal import one_line
from ingestion.folder_map.folder_map import check_map
from ingestion.sources.scan_report import skip_reason
from ingestion.watch.dry_run import Preview, Previewer
from storage.chat.channels import DirectLibrary, require_channel_name
from storage.config_file import MAP_NAME, InvalidFile
from storage.errors import SettingsError
from storage.folders.folder_status import FolderStatus
from storage.installations.slack_installations import SlackInstallation, SlackInstallations
from storage.sql.audit import AuditedAction

# Files listed per kind by a dry run.
MAX_FILES_LISTED = 50
# Files listed that an approval would delete, or that are not read.
MAX_FILES_NAMED = 20


async def preview_ingest(options: argparse.Namespace) -> int:
    """Print what ``footnote ingest`` would do; return 1 if a folder cannot be trusted or a file is refused.

    Raises:
        UnknownChannel: invalid channel name.
        SettingsError: the file name is that of an unsupported type.
    """
    path, channel = options.path, options.channel
    async with _open_previewer(load_settings()) as previewer:
        if channel is None:
            return _report(await previewer.root(path))
        require_channel_name(channel)
        if path.is_file() and (reason := skip_reason(path.name)):
            raise SettingsError(f"{path.name} {reason}")
        return _report([await previewer.file_or_folder(path, channel)])


async def preview_folders(options: argparse.Namespace) -> int:
    """Print what the next scan would do; return 2 if the folder map has mistakes, else as above."""
    settings = load_settings()
    try:
        async with _open_previewer(settings) as previewer:
            return _report(await previewer.mapped(settings.home / MAP_NAME, settings.inbox))
    except InvalidFile:
        return await check_folders(options)


async def check_folders(options: argparse.Namespace) -> int:
    """Print every mistake in the folder map with its line; return 2 if there is one."""
    settings = load_settings()
    folder_map = settings.home / MAP_NAME
    mistakes = await asyncio.to_thread(check_map, folder_map, settings.inbox)
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    if not await asyncio.to_thread(folder_map.exists):
        print(f"There is no {folder_map}: the inbox alone is watched, {settings.inbox}", file=sys.stderr)
    elif not mistakes:
        print(f"{folder_map}: no mistakes", file=sys.stderr)
    return 2 if mistakes else 0


@asynccontextmanager
async def _open_previewer(settings: Settings) -> AsyncIterator[Previewer]:
    """Yield a previewer of the home; a temporary empty home replaces one that does not exist yet."""
    with TemporaryDirectory(prefix="footnote-") as empty:
        if settings.storage.is_empty_home:
            elsewhere = settings.storage.model_copy(update={"home": Path(empty)})
            settings = Settings(elsewhere, settings.bot, settings.ingestion)
        async with open_home(settings) as stores:
            yield Previewer(
                stores.folders,
                max_bytes=settings.storage.max_file_mb * 1024 * 1024,
                ask_from_share=settings.ingestion.ask_before_deleting_share,
            )


def _report(previews: list[Preview]) -> int:
    for preview in previews:
        print(f"{preview.location} -> {preview.channel}")
        print(*(f"  {line}" for line in _lines(preview)), sep="\n")
    print("Nothing was written: this was a dry run.", file=sys.stderr)
    return 1 if any(one.problem or one.refused for one in previews) else 0


def _lines(preview: Preview) -> Iterable[str]:
    if preview.problem:
        yield f"problem    {preview.problem}"
    yield from _named("new", preview.new)
    yield from _named("replaced", preview.replaced)
    yield from _named("renamed", [f"{old} -> {new}" for old, new in preview.renamed])
    yield from _named(
        "refused", [f"{file}: it is larger than FOOTNOTE_MAX_FILE_MB" for file in preview.refused]
    )
    yield from _named("deleted" if preview.is_watched else "kept", preview.vanished)
    yield from _named("asked", preview.asked)
    yield from _named("remark", preview.remarks)
    yield f"{'unchanged':<10} {preview.unchanged}"


def _named(word: str, files: Sequence[str]) -> list[str]:
    return _first_lines(f"{word:<10} ", files, MAX_FILES_LISTED)


def _first_lines(indent: str, texts: Sequence[str], most: int) -> list[str]:
    """Return a line for each of the first ``most`` texts, and how many more there are."""
    more = len(texts) - most
    return [f"{indent}{text}" for text in (*texts[:most], *([f"and {more} more"] if more > 0 else ()))]


async def reconcile(options: argparse.Namespace) -> int:
    """Repair and print differences; return 1 if another process is reconciling or a PDF stays lost."""
    async with open_ingestion(load_settings()) as (_, ingestion):
        repairs = await ingestion.reconcile()
        if repairs is None:
            print(
                "footnote: another process is reconciling; see its log",
                file=sys.stderr,
            )
            return 1
        copied, lost = await ingestion.lost_copies.copy(_show_copied)
    if options.json:
        print(dump(asdict(repairs) | {"copied": copied, "still_lost": lost}))
        return 1 if lost else 0
    counted = [
        (
            repairs.republished,
            "publications missing from the index will be published again by `footnote serve`",
        ),
        (repairs.orphans_removed, "orphaned publications were removed from the index"),
        (repairs.tenants_dropped, "tenants without a channel were dropped"),
        (copied, "lost PDFs were copied again from their folder"),
        (
            lost,
            "lost PDFs are not in their folder either: put them back, or ingest them",
        ),
        (repairs.blobs_uploaded, "blobs missing from the store were uploaded again"),
        (repairs.readings_requeued, "readings with missing files will be read again by `footnote serve`"),
        (repairs.files_swept, "unreferenced files were removed"),
    ]
    print(*[f"{number} {what}" for number, what in counted if number] or ["No differences."], sep="\n")
    return 1 if lost else 0


def _show_copied(tried: int, total: int) -> None:
    print(f"lost copies: {tried} of {total} tried", file=sys.stderr)


async def list_folders(options: argparse.Namespace) -> int:
    """Print folders and Slack workspaces; return 1 if one has a problem or the folder map has mistakes."""
    settings = load_settings()
    mistakes = await asyncio.to_thread(check_map, settings.home / MAP_NAME, settings.inbox)
    if mistakes:
        print(
            "folders.toml has mistakes, so the previous mapping stays active; footnote folders --check "
            "lists them",
            file=sys.stderr,
        )
    async with open_existing_home(settings) as stores:
        folders, loose = await stores.folders.status(), await stores.folders.unsupported_files()
        library, channels = await stores.channels.direct_library(), await stores.channels.all()
        installed = await SlackInstallations(stores.database).all()
    if not folders:
        print(f"No folder is watched yet; footnote serve watches {settings.inbox}", file=sys.stderr)
    for folder in folders:
        print(dump(folder_line(folder)) if options.json else _row(folder))
    if dead_links := loopback_links_warning(settings.bot, links_url(settings)):
        print(f"problem: {dead_links}", file=sys.stderr)
    print(*map(_workspace, installed), sep="\n", end="\n" if installed else "", file=sys.stderr)
    if library or any(not one.is_local for one in channels):
        print(_direct_chats(library), file=sys.stderr)
    if loose and options.json:
        print(dump(inbox_line(settings.inbox, loose)))
    elif loose:
        print(
            f"{'':>4}  {'inbox':<14} {len(loose):>6} files  {settings.inbox}",
            *_unsupported_files(loose),
            sep="\n",
        )
    has_problem = any([*(one.problem for one in folders), *(one.problem for one in installed)])
    return 1 if mistakes or dead_links or has_problem else 0


async def approve(options: argparse.Namespace) -> int:
    """Approve the deletion of a folder's vanished files, exactly those that were shown."""
    async with open_existing_home(load_settings()) as stores:
        folder = next((one for one in await stores.folders.status() if one.id == options.id), None)
        if folder is None:
            print(f"footnote: there is no folder {options.id}; see footnote folders", file=sys.stderr)
            return 2
        if not folder.pending_deletions:
            print("Nothing in this folder needs approval.", file=sys.stderr)
            return 0
        print(f"Missing from {folder.location} (channel {folder.channel_name}):", file=sys.stderr)
        vanished = _first_lines("  ", [file for _, file in folder.pending_deletions], MAX_FILES_NAMED)
        print(*vanished, *filter(None, [folder.problem]), sep="\n", file=sys.stderr)
        if not options.yes and not await is_confirmed("Delete these documents? [y/N] "):
            print("Nothing was deleted.", file=sys.stderr)
            return 1
        action = AuditedAction(LOCAL_ASKER, "approve", folder.channel, str(folder.id))
        allowed = await stores.folders.approve(
            folder.id, [document for document, _ in folder.pending_deletions], action
        )
    if allowed == 1:
        said = "1 document will be deleted by the next scan unless its file reappears."
    else:
        said = f"{allowed} documents will be deleted by the next scan unless their files reappear."
    print(said, file=sys.stderr)
    return 0


def _workspace(installed: SlackInstallation) -> str:
    """Return a line for a Slack workspace that has the app, with its token's problem."""
    line = f"Slack: {installed.name} ({installed.installation}) since {installed.installed_at.date()}"
    if not installed.problem:
        return line
    return f"{line}\nproblem: {installed.problem}: install the app there again, at /slack/install"


def _direct_chats(library: DirectLibrary | None) -> str:
    """Return which library direct chats search, or how to configure one."""
    if library is None:
        return f"Direct chats search no library: name one in {MAP_NAME}, under [direct_chats]"
    name = library.channel.name
    return f"Direct chats search {name}: footnote documents --channel {quote(name)}"


def _row(folder: FolderStatus) -> str:
    name, option = folder.channel_name, channel_option(folder.channel_name, folder.channel)
    channel = name if name == option else f"{name} ({option})"
    lines = [
        f"{folder.id:>4}  {state_of(folder):<14} {folder.documents:>6} files  {folder.location} -> {channel}"
    ]
    if folder.problem:
        lines.append(f"{'':<6}{folder.problem}")
    lines += _unsupported_files(folder.unsupported_files)
    if folder.deleted:
        lines.append(
            f"{'':<6}{folder.deleted} deleted: footnote documents --deleted --channel {quote(option)}"
        )
    return "\n".join(map(one_line, lines))


def _unsupported_files(strangers: Mapping[str, str]) -> list[str]:
    """Return a line for each file that is not read, with the reason."""
    unread = [f"not read: {file}: {reason}" for file, reason in strangers.items()]
    return _first_lines(" " * 6, unread, MAX_FILES_NAMED)


def state_of(folder: FolderStatus) -> str:
    """Return the state: ok, needs approval, problem, paused (in a chat) or unwatched.

    Unwatched folders were ingested by hand, or are no longer mapped.
    """
    if folder.pending_deletions:
        return "needs approval"
    if folder.problem:
        return "problem"
    if folder.is_paused:
        return "paused"
    return "ok" if folder.watched else "unwatched"
