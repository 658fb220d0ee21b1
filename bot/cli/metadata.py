"""``footnote metadata``: what a document says of itself and where, and an admin's corrections."""

from __future__ import annotations

import argparse
import sys

from bot.engines import load_settings, open_stores
from storage.corrections import Corrections
from storage.errors import SettingsError
from storage.metadata_models import FIELDS, MetadataField
from storage.models import DocumentStatus


async def show_metadata(options: argparse.Namespace) -> int:
    """Correct what was asked for, then print every field with its page.

    Raises:
        SettingsError: there is no such file, field or value, or ``--set`` names none.
    """
    changes = dict(map(_change, options.set)) | dict.fromkeys(options.undo)
    async with open_stores(load_settings()) as storage:
        channel = await storage.channels.by_name(options.channel)
        if changes:
            await Corrections(storage.database).correct(channel.id, options.file, changes)
        documents = await storage.catalog.documents(channel.id)
    found = [one for one in documents if one.file == options.file and one.state != "deleted"]
    if not found:
        raise SettingsError(f"the channel has no file {options.file}; see footnote documents")
    _print(found[0])
    return 0


def _change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--set {text}: say FIELD=VALUE, or FIELD= when the document says nothing of it")
    return name.strip(), value.strip()


def _print(document: DocumentStatus) -> None:
    print(f"{document.file}: {document.title}")
    for name in FIELDS:
        print(f"  {name:<14} {_row(document.metadata.get(name))}".rstrip())
    print("To correct a field: --set FIELD=VALUE; to take it back: --undo FIELD", file=sys.stderr)


def _row(one: MetadataField | None) -> str:
    if one is None:
        return ""
    return f"{one.value}  ({'corrected' if one.page is None else f'page {one.page}'})"
