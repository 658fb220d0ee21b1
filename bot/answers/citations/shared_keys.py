"""Signing keys shared by all machines of a database: stored in SQL, cached in memory for a moment.

They are read again before a link is opened: a key that another process made verifies at once, and a retired
one no longer does.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from bot.answers.citations.signed_links import ACTIVE_KEYS, KEY_BYTES, LinkKey
from storage.clock import monotonic_seconds
from storage.installations.link_keys import LinkKeyStore, StoredLinkKey

# Refresh interval of a process that opens no links, so that it signs with the newest key.
REFRESH_SECONDS = 10.0
# Minimum interval between SQL reads, however many forged links are opened.
HELD_SECONDS = 0.1


class SharedKeyRing:
    """The active keys as stored in SQL; use ``open`` to create one."""

    def __init__(self, store: LinkKeyStore, held: Sequence[StoredLinkKey]) -> None:
        self._store = store
        self._held = held
        # Monotonic seconds of the last SQL read, whether it succeeded or not.
        self._read_at = monotonic_seconds()
        self._reading = asyncio.Lock()

    @classmethod
    async def open(cls, store: LinkKeyStore) -> SharedKeyRing:
        """Read the keys from SQL; create the first one if there is none.

        Raises:
            DatabaseUnavailable: the database is unavailable.
        """
        return cls(store, await store.keys() or await store.begin(secrets.token_bytes(KEY_BYTES)))

    def keys(self) -> tuple[LinkKey, ...]:
        """Return the active keys, newest first."""
        return tuple(LinkKey(one.number, one.secret) for one in self._held[:ACTIVE_KEYS])

    async def refresh(self) -> None:
        """Read the keys again, unless that happened within ``HELD_SECONDS``.

        Raises:
            DatabaseUnavailable: the database is unavailable; the cached keys remain.
        """
        if self._is_fresh():
            return
        async with self._reading:
            # Another task may have read them while this one waited for the lock.
            if not self._is_fresh():
                await self._read()

    async def rotate(self, actor: str) -> None:
        """Sign with a new key; links of the previous key still open, older ones become invalid."""
        await self._store.add(secrets.token_bytes(KEY_BYTES), ACTIVE_KEYS, actor)
        async with self._reading:
            await self._read()

    def _is_fresh(self) -> bool:
        return monotonic_seconds() - self._read_at < HELD_SECONDS

    async def _read(self) -> None:
        try:
            self._held = await self._store.keys() or self._held
        finally:
            self._read_at = monotonic_seconds()
