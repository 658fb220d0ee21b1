"""``--dry-run``: what would happen, said and not done."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.engines import Settings, load_settings, open_stores
from ingestion.sources.names import why_passed_over
from ingestion.watch.preview import Preview, Previewer
from ingestion.wish.mapping import MAP_NAME, InvalidFolderMap, check_map
from storage.channels import is_folder_name, named_tenant
from storage.errors import SettingsError, UnknownChannel

MAX_FILES_LISTED = 50


async def preview_ingest(options: argparse.Namespace) -> int:
    """Say what ``footnote ingest`` would do; 1 when a folder cannot be trusted or a file is refused."""
    async with _open_previewer(load_settings()) as previewer:
        if options.channel is None:
            previews = await previewer.root(options.path)
        else:
            _refuse_misnamed(options.path, options.channel)
            previews = [await previewer.file_or_folder(options.path, options.channel)]
    return _report(previews)


async def preview_folders(options: argparse.Namespace) -> int:
    """Say what the next look at everything that is watched would do; as above, 2 when the map is wrong."""
    settings = load_settings()
    try:
        async with _open_previewer(settings) as previewer:
            return _report(await previewer.mapped(settings.home / MAP_NAME, settings.inbox))
    except InvalidFolderMap:
        return await check_folders(options)


async def check_folders(options: argparse.Namespace) -> int:
    """Name every mistake of the folder map by its line; 2 when there is one."""
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
    """On the home as it is; an empty one elsewhere stands in for one that is not there yet."""
    with TemporaryDirectory(prefix="footnote-") as empty:
        is_new = settings.storage.database_url is None and not (settings.home / "footnote.db").exists()
        async with open_stores(_at_home(settings, Path(empty)) if is_new else settings) as storage:
            yield Previewer(
                storage.folders,
                max_bytes=settings.storage.max_file_mb * 1024 * 1024,
                ask_from_share=settings.ingestion.ask_before_deleting_share,
            )


def _at_home(settings: Settings, home: Path) -> Settings:
    elsewhere = settings.storage.model_copy(update={"home": home})
    return Settings(elsewhere, settings.bot, settings.ingestion)


def _refuse_misnamed(path: Path, channel: str) -> None:
    """Refuse what ``footnote ingest`` would refuse.

    Raises:
        UnknownChannel: no channel can be called so.
        SettingsError: the file is no PDF by its name.
    """
    if named_tenant(channel) != channel and not is_folder_name(channel):
        raise UnknownChannel(f"{channel!r} cannot be a channel: no folder can have its name")
    if path.is_file() and (reason := why_passed_over(path.name)):
        raise SettingsError(f"{path.name} {reason}")


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
    yield from _named(_fate(preview), preview.vanished)
    yield from _named("remark", preview.remarks)
    yield f"{'unchanged':<10} {preview.unchanged}"


def _fate(preview: Preview) -> str:
    """What becomes of the vanished files."""
    if not preview.is_watched:
        return "kept"
    return "asked" if preview.is_asking else "deleted"


def _named(word: str, files: Iterable[str]) -> Iterable[str]:
    listed = list(files)
    yield from (f"{word:<10} {file}" for file in listed[:MAX_FILES_LISTED])
    if len(listed) > MAX_FILES_LISTED:
        yield f"{word:<10} and {len(listed) - MAX_FILES_LISTED} more"
