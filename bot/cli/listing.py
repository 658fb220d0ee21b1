"""``footnote documents`` and ``footnote channels``: what is there, and in which state."""

from __future__ import annotations

import argparse

from bot.cli.json_lines import channel_line, document_line, dump
from bot.engines import load_settings, open_storage
from storage.models import Channel, DocumentStatus


async def list_documents(options: argparse.Namespace) -> int:
    """Print the channel's documents."""
    async with open_storage(load_settings()) as storage:
        channel = await storage.channels.by_name(options.channel)
        for document in await storage.catalog.documents(channel.id):
            print(dump(document_line(document)) if options.json else _document_row(document))
    return 0


async def list_channels(options: argparse.Namespace) -> int:
    """Print all channels."""
    async with open_storage(load_settings()) as storage:
        for channel in await storage.channels.all():
            print(dump(channel_line(channel)) if options.json else _channel_row(channel))
    return 0


def _document_row(document: DocumentStatus) -> str:
    state = f"{document.state} ({document.rung.value})" if document.rung else document.state
    row = f"{state:<14} {document.pages:>5} p.  {document.file}"
    return f"{row}\n{'':<14}          {document.reason}" if document.reason else row


def _channel_row(channel: Channel) -> str:
    return f"{channel.name:<24} {channel.platform.value:<6} {channel.tenant}"
