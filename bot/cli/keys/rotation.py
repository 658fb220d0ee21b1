"""``footnote keys``: which keys sign links, and new ones."""

from __future__ import annotations

import argparse
import asyncio

from bot.cli.home import open_existing_home
from bot.cli.json_output import dump
from bot.core.citations.shared_keys import REFRESH_SECONDS, SIGNS_AFTER, SharedKeyRing
from bot.core.citations.signed_links import ACTIVE_KEYS, KeyRing
from bot.public_links import open_link_keys
from bot.settings import load_settings
from storage.errors import SettingsError

ACTOR = "local"
"""Whoever uses the command line, as the audit names them."""


async def show_keys(options: argparse.Namespace) -> int:
    """Print where the keys are and the numbers of those that are active, never a key."""
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        ring = await open_link_keys(settings, stores.database)
        numbers = [key.id for key in ring.keys()]
    where = "sql" if isinstance(ring, SharedKeyRing) else str(settings.bot.link_keys)
    if options.json:
        print(dump({"where": where, "signs": numbers[0], "verify": sorted(numbers)}))
    else:
        print(f"{where}: key {numbers[0]} signs, {len(numbers)} verify")
    return 0


async def rotate_keys(options: argparse.Namespace) -> int:
    """Sign with a new key; links of the key before it still open.

    Raises:
        SettingsError: the keys are a mounted file, which is made elsewhere.
        DatabaseUnavailable: the database does not work.
    """
    return await _rotate(options, 1, "links of the key before still open")


async def end_links(options: argparse.Namespace) -> int:
    """Let no link open that was made so far; raises as ``rotate_keys``."""
    return await _rotate(options, ACTIVE_KEYS, "every link made before has ended")


async def _rotate(options: argparse.Namespace, times: int, outcome: str) -> int:
    if options.file is not None:
        for _ in range(times):
            await asyncio.to_thread(_rotate_file, KeyRing(options.file))
        print(f"{options.file}: mount it on every machine, and name it in FOOTNOTE_LINK_KEYS")
        return 0
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        ring = await open_link_keys(settings, stores.database)
        if not isinstance(ring, SharedKeyRing):
            raise SettingsError(
                f"the keys are in {settings.bot.link_keys}: say --file with a copy of it, and mount that one"
            )
        for _ in range(times):
            await ring.rotate(ACTOR)
    seconds = f"{REFRESH_SECONDS:g} s"
    print(
        f"{outcome}; running services know it within {seconds}, and sign anew after {SIGNS_AFTER.seconds} s"
    )
    return 0


def _rotate_file(ring: KeyRing) -> None:
    """A file that is not there yet is made, with one key."""
    try:
        if ring.is_made:
            ring.rotate()
        else:
            ring.keys()
    except (ValueError, KeyError, TypeError):
        raise SettingsError("there is a file that holds no keys, and it was left as it is") from None
