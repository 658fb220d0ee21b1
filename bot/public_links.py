"""Links under the public URL, signed by the keys that the settings choose."""

from __future__ import annotations

from datetime import timedelta

from bot.core.citations.shared_keys import SharedKeyRing
from bot.core.citations.signed_links import KeyRing, KeySource, Links
from bot.server_socket import base_url, read_server_url
from bot.settings import Settings
from storage.clock import utc_now
from storage.errors import SettingsError
from storage.installations.link_keys import LinkKeyStore
from storage.sql.database import Database


async def open_link_keys(settings: Settings, database: Database) -> KeySource:
    """Return the keys that sign links: those of the file that the settings name, else those in SQL.

    Raises:
        SettingsError: the file is missing or damaged.
        DatabaseUnavailable: the database does not work.
    """
    mounted = settings.bot.link_keys
    if mounted is None:
        return await SharedKeyRing.open(LinkKeyStore(database))
    ring = KeyRing(mounted, is_ours=False)
    try:
        ring.keys()
    except OSError as error:
        raise SettingsError(f"{mounted} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{mounted} is damaged: put back a copy") from None
    return ring


async def open_links(settings: Settings, database: Database) -> Links:
    """Links under the public URL, else under where this home's ``serve`` listens; raises as its keys do."""
    bot, keys = settings.bot, await open_link_keys(settings, database)
    return Links(keys, links_url(settings), timedelta(days=bot.link_days), utc_now, bot.button_opens)


def links_url(settings: Settings) -> str:
    """What every link begins with."""
    bot = settings.bot
    return bot.public_url or read_server_url(settings.home) or base_url(bot.host, bot.port)
