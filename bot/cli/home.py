"""For read-only commands: open an existing home, resolve ``--channel``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from shlex import quote

from bot.bootstrap import open_home
from bot.settings import Settings
from storage.chat.channels import named_tenant
from storage.errors import SettingsError, UnknownChannel
from storage.models import Channel, TenantName
from storage.stores import Stores

MAX_CHANNELS_NAMED = 20


class EmptyHome(SettingsError):
    """The home is unused; the message says how to ingest documents."""


def require_home(settings: Settings) -> None:
    """Check that the home is not empty, without creating anything.

    Raises:
        EmptyHome: it is empty.
    """
    if settings.storage.is_empty_home:
        raise EmptyHome(
            f"there is nothing in {settings.home} yet: start `footnote serve` and drop PDFs into "
            f"{settings.inbox}/<channel>/, or read a folder once with `footnote ingest DIR --channel NAME`; "
            "FOOTNOTE_HOME chooses another home"
        )


@asynccontextmanager
async def open_existing_home(settings: Settings) -> AsyncIterator[Stores]:
    """Yield SQL and files of an existing home.

    Raises:
        EmptyHome: nothing was ever ingested.
        StorageError: it cannot be opened.
    """
    require_home(settings)
    async with open_home(settings) as stores:
        yield stores


async def chosen_channel(stores: Stores, name: str | None) -> Channel:
    """Return the channel of this name or tenant; without a name, the only channel.

    Raises:
        UnknownChannel: no such channel, or none was named and there are several.
    """
    if name is not None:
        return await stores.channels.by_name(name)
    channels = await stores.channels.all()
    if len(channels) == 1:
        return channels[0]
    if not channels:
        raise UnknownChannel("there is no channel yet: `footnote ingest DIR --channel NAME` creates one")
    shown = channels[:MAX_CHANNELS_NAMED]
    named = [quote(channel_option(channel.name, channel.tenant)) for channel in shown]
    more = len(channels) - len(named)
    raise UnknownChannel(
        f"name one of the {len(channels)} channels with --channel: {', '.join(named)}"
        + (f" and {more} more, as `footnote channels` lists them" if more else "")
    )


async def is_confirmed(question: str, *, instead: str = "--yes") -> bool:
    """True if the user types yes.

    Args:
        instead: option that confirms where there is no terminal.
    """
    if not sys.stdin.isatty():
        print(f"footnote: not a terminal, cannot ask for confirmation; add {instead}", file=sys.stderr)
        return False
    print(question, end="", file=sys.stderr, flush=True)
    # Not input() in a thread: Ctrl-C could not interrupt it.
    typed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        asyncio.get_running_loop().remove_reader(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def channel_option(name: str, tenant: TenantName | str) -> str:
    """Return a channel's ``--channel`` value: its name if that identifies it, else its tenant name."""
    return name if named_tenant(name) == tenant else str(tenant)
