"""``footnote tokens``: creates, lists and revokes the tokens of programs."""

from __future__ import annotations

import argparse
import sys

from bot.cli.home import chosen_channel, open_existing_home
from bot.cli.json_output import dump
from bot.core.models import LOCAL_ASKER
from bot.settings import load_settings
from bot.terminal import one_line
from storage.errors import SettingsError
from storage.installations.api_tokens import MAX_NAME_CHARS, ApiTokens

ALL_CHANNELS = "all channels"


async def create_token(options: argparse.Namespace) -> int:
    """Create a token and print it, which nothing does again.

    Raises:
        SettingsError: the name is empty or too long, or the channel is a direct chat.
        UnknownChannel: no such channel.
    """
    name = options.name.strip()
    if not name or len(name) > MAX_NAME_CHARS:
        raise SettingsError(f"a token's name has 1 to {MAX_NAME_CHARS} characters")
    async with open_existing_home(load_settings()) as stores:
        channel = await chosen_channel(stores, options.channel) if options.channel else None
        if channel and channel.is_direct:
            raise SettingsError("a direct chat belongs to one person, so no token opens it")
        number, token = await ApiTokens(stores.database).create(name, channel, LOCAL_ASKER)
    print(token)
    place = channel.name if channel else ALL_CHANNELS
    print(
        one_line(f"Token {number} opens {place}. Store it now: it is not shown again."),
        f"Revoke it with `footnote tokens revoke {number}`.",
        sep="\n",
        file=sys.stderr,
    )
    return 0


async def list_tokens(options: argparse.Namespace) -> int:
    """Print every token with its number, name, channel and day."""
    async with open_existing_home(load_settings()) as stores:
        tokens = await ApiTokens(stores.database).all()
    for one in tokens:
        made = one.created_at
        line = {"id": one.id, "name": one.name, "channel": one.channel or None}
        row = f"{one.id:>4}  {made:%Y-%m-%d}  {one.channel or ALL_CHANNELS:<24}  {one.name}"
        print(
            dump(line | {"created_at": made.isoformat(timespec="seconds")}) if options.json else one_line(row)
        )
    if not tokens:
        print("There are no tokens, so the API is off.", file=sys.stderr)
    return 0


async def revoke_token(options: argparse.Namespace) -> int:
    """Revoke a token; return 1 if there is none of this number."""
    async with open_existing_home(load_settings()) as stores:
        is_revoked = await ApiTokens(stores.database).revoke(options.id, LOCAL_ASKER)
    if not is_revoked:
        print(f"footnote: there is no token {options.id}; see `footnote tokens list`", file=sys.stderr)
        return 1
    print(f"Revoked token {options.id}.", file=sys.stderr)
    return 0
