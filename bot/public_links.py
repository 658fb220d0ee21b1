"""Links under the public URL, signed with the keys that the settings choose."""

from __future__ import annotations

from datetime import timedelta

from bot.answers.citations.shared_keys import SharedKeyRing
from bot.answers.citations.signed_links import KeyRing, KeySource, Links
from bot.server_socket import base_url, read_server_url
from bot.settings import Settings
from storage.clock import utc_now
from storage.errors import SettingsError
from storage.installations.link_keys import LinkKeyStore
from storage.sql.database import Database


async def open_link_keys(settings: Settings, database: Database) -> KeySource:
    """Return the link signing keys: from the file named in the settings, else from SQL.

    Raises:
        SettingsError: the file is missing or damaged.
        DatabaseUnavailable: the database is down.
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
    """Return links under the public URL, else under the address of this home's ``serve``.

    Raises as ``open_link_keys``.
    """
    bot, keys = settings.bot, await open_link_keys(settings, database)
    return Links(keys, links_url(settings), timedelta(days=bot.link_days), utc_now, bot.button_opens)


def links_url(settings: Settings) -> str:
    """Return the base URL of every link."""
    bot = settings.bot
    return bot.public_url or read_server_url(settings.home) or base_url(bot.host, bot.port)
