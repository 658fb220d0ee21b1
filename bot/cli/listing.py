"""``footnote documents`` and ``footnote channels``: what is there, and in which state."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from shlex import quote

from bot.cli.json_lines import channel_line, document_line, dump
from bot.cli.where import read_where
from bot.engines import load_settings, open_stores
from storage.metadata_models import says, self_description
from storage.models import Channel, DocumentStatus


async def list_documents(options: argparse.Namespace) -> int:
    """Print the channel's documents; for people, those that were deleted are only counted."""
    where = read_where(options.where)
    async with open_stores(load_settings()) as storage:
        channel = await storage.channels.by_name(options.channel)
        documents = [one for one in await storage.catalog.documents(channel.id) if says(one.metadata, where)]
    if options.json:
        print(*(dump(document_line(one)) for one in documents), sep="\n", end="\n" if documents else "")
    else:
        _print_rows(documents, options.channel, "no such documents" if where else "no documents")
    return 0


def _print_rows(documents: Sequence[DocumentStatus], channel: str, none: str) -> None:
    kept = [one for one in documents if one.state != "deleted"]
    for document in kept:
        print(_document_row(document))
    if not kept:
        print(f"This channel has {none}.", file=sys.stderr)
    if gone := len(documents) - len(kept):
        print(f"{gone} deleted: footnote documents --deleted --channel {quote(channel)}", file=sys.stderr)


async def list_channels(options: argparse.Namespace) -> int:
    """Print all channels, and what is wrong with the glossary of their words."""
    async with open_stores(load_settings()) as storage:
        channels = await storage.channels.all()
        glossary = await storage.glossary.current()
    for channel in channels:
        terms = len(glossary.of(channel))
        print(dump(channel_line(channel, terms)) if options.json else _channel_row(channel, terms))
    for mistake in (*storage.glossary.mistakes, *glossary.unknown(channels)):
        print(mistake, file=sys.stderr)
    return 0


def _document_row(document: DocumentStatus) -> str:
    state = f"{document.state} ({document.rung.value})" if document.rung else document.state
    pages = f"{document.pages} p." if document.pages else ""
    row = f"{state:<14} {pages:>8}  {document.file}"
    reason = document.reason or ""
    notes = [note for note in (self_description(document.metadata), reason[:1].upper() + reason[1:]) if note]
    return "\n".join([row, *(f"{'':<14} {'':>8}  {note}" for note in notes)])


def _channel_row(channel: Channel, terms: int) -> str:
    row = f"{channel.name:<24} {channel.platform.value:<6} {channel.tenant}"
    return f"{row}  {terms} terms in the glossary" if terms else row
