"""The signing keys of all machines of a database: kept in SQL, and held in memory for a moment.

Whoever opens a link reads them again first: a key that another process made verifies at once, and one that is
out verifies nothing any more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from bot.core.citations.signed_links import ACTIVE_KEYS, KEY_BYTES, LinkKey
from storage.clock import steady_seconds
from storage.installations.link_keys import LinkKeyStore, StoredLinkKey

# How often a process that opens no link reads them, so that it signs with the newest.
REFRESH_SECONDS = 10.0
# Forged links, however many, have SQL asked no more often.
HELD_SECONDS = 0.1


class SharedKeyRing:
    """The active keys as SQL has them; ``open`` is the way in."""

    def __init__(self, store: LinkKeyStore, held: Sequence[StoredLinkKey]) -> None:
        self._store = store
        self._held = held
        # When SQL was last asked, whether it answered or not.
        self._read_at = steady_seconds()
        self._reading = asyncio.Lock()

    @classmethod
    async def open(cls, store: LinkKeyStore) -> SharedKeyRing:
        """Read the keys in SQL; make the first one where there is none.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        return cls(store, await store.keys() or await store.begin(secrets.token_bytes(KEY_BYTES)))

    def keys(self) -> tuple[LinkKey, ...]:
        """Return the active keys, newest first."""
        return tuple(LinkKey(one.number, one.secret) for one in self._held[:ACTIVE_KEYS])

    async def refresh(self) -> None:
        """Read them again, unless that was done a moment ago.

        Raises:
            DatabaseUnavailable: the database does not work; the keys stay as they are.
        """
        if self._is_fresh():
            return
        async with self._reading:
            if not self._is_fresh():
                await self._read()

    async def rotate(self, actor: str) -> None:
        """Sign with a new key; links of the key before it still open, older ones end."""
        await self._store.add(secrets.token_bytes(KEY_BYTES), ACTIVE_KEYS, actor)
        async with self._reading:
            await self._read()

    def _is_fresh(self) -> bool:
        return steady_seconds() - self._read_at < HELD_SECONDS

    async def _read(self) -> None:
        try:
            self._held = await self._store.keys() or self._held
        finally:
            self._read_at = steady_seconds()
