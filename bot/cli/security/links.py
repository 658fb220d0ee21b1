"""``footnote links``: revokes links, and rotates the signing key."""

from __future__ import annotations

import argparse
import json
import re
import sys

from bot.answers.citations.shared_keys import SharedKeyRing
from bot.answers.citations.signed_links import KeyRing, Links
from bot.cli.home import chosen_channel, is_confirmed, open_existing_home
from bot.core.errors import LinkForged
from bot.core.models import LOCAL_ASKER
from bot.public_links import open_link_keys, open_links
from bot.settings import load_settings
from storage.errors import SettingsError
from storage.models import Channel
from storage.sql.audit import AuditedAction, AuditLog
from storage.stores import Stores

_TOKEN = re.compile(r"/[vf]/([A-Za-z0-9_-]{112})(?![A-Za-z0-9_-])", re.ASCII)


async def revoke_links(options: argparse.Namespace) -> int:
    """Revoke the links of a channel, of one link's answer, or of all answers to a person.

    Raises:
        SettingsError: no such channel, link or person.
    """
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        if options.channel:
            return await _revoke_channel(stores, await chosen_channel(stores, options.channel), options)
        links = await open_links(settings, stores.database)
        if options.link:
            found, subject = await _of_answer(stores, links, options.link)
        else:
            found, subject = await _told_to(stores, links, options.person), options.person
        if not options.yes and not await is_confirmed(f"Revoke the links to {len(found)} quotes? [y/N] "):
            return 1
        action = AuditedAction(LOCAL_ASKER, "revoke links", "", subject)
        ended = await stores.citations.revoke(found, action)
    print(f"Revoked the links to {ended} quotes.", file=sys.stderr)
    return 0


async def rotate_key(options: argparse.Namespace) -> int:
    """Rotate the signing key; links of the previous key still open, those of older keys do not.

    Raises:
        SettingsError: the keys are in a mounted file, which is managed elsewhere, or the file is damaged.
    """
    settings = load_settings()
    async with open_existing_home(settings) as stores:
        ring = await open_link_keys(settings, stores.database)
        if options.file is None and not isinstance(ring, SharedKeyRing):
            raise SettingsError(
                f"the keys are in {settings.bot.link_keys}: give --file with a copy of it, and mount that"
            )
        if not options.yes and not await is_confirmed(
            "Invalidate the links signed with the previous key? [y/N] "
        ):
            return 1
        if options.file is not None:
            await AuditLog(stores.database).record(AuditedAction(LOCAL_ASKER, "rotate key", "", "file"))
            _rotate_file(KeyRing(options.file))
        elif isinstance(ring, SharedKeyRing):
            await ring.rotate(LOCAL_ASKER)
    said = "Once it is mounted everywhere, new" if options.file else "New"
    print(
        f"{said} links are signed with a new key. A second rotation will invalidate all current links.",
        file=sys.stderr,
    )
    return 0


def _rotate_file(ring: KeyRing) -> None:
    """Rotate the keys in a file, or create it with one key."""
    try:
        if ring.is_made:
            ring.rotate()
        else:
            ring.keys()
    except (ValueError, KeyError, TypeError):
        raise SettingsError("that file contains no keys and was not changed") from None


async def _revoke_channel(stores: Stores, channel: Channel, options: argparse.Namespace) -> int:
    if not options.yes and not await is_confirmed(f"Revoke all links of {channel.name}? [y/N] "):
        return 1
    action = AuditedAction(LOCAL_ASKER, "revoke links", channel.tenant)
    await stores.channels.invalidate_links(channel.id, action)
    print(f"Revoked all links of {channel.name}.", file=sys.stderr)
    return 0


async def _of_answer(stores: Stores, links: Links, url: str) -> tuple[set[int], str]:
    """Return the citation ids of a link's answer, whose quotes link to one another, and its audit subject."""
    found = _TOKEN.search(f"{url}/" if "/" in url else f"/v/{url}")
    if found is None:
        raise SettingsError("not a link: give its complete URL, as shown in the chat")
    try:
        claims = links.decode_any(found[1])
    except LinkForged:
        raise SettingsError("that link was not signed by a key that this home still has") from None
    citation = await stores.citations.get(claims.citation_id)
    quotes = await stores.citations.of_answer(citation) if citation else ()
    return {one.id for one in quotes}, f"citation {claims.citation_id}"


async def _told_to(stores: Stores, links: Links, person: str) -> set[int]:
    answers = await stores.citations.answers_to(person)
    if not answers:
        raise SettingsError(f"no stored answers to {person}; write people's ids as in FOOTNOTE_ADMINS")
    tokens = {token for answer in answers for token in _TOKEN.findall(json.dumps(answer))}
    return {links.decode_any(token).citation_id for token in tokens if _is_ours(links, token)}


def _is_ours(links: Links, token: str) -> bool:
    try:
        links.decode_any(token)
    except LinkForged:
        return False  # its key is gone, so it has ended already
    return True
