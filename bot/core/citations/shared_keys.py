"""The signing keys of all machines of a database: kept in SQL, held in memory, read again every few seconds.

A new key verifies at once and signs only when every machine knows it, so that no link is refused by a machine
that had not looked yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from bot.core.citations.signed_links import ACTIVE_KEYS, KEY_BYTES, KeyRing, LinkKey
from storage.installations.link_keys import LinkKeyStore, StoredLinkKey

REFRESH_SECONDS = 10.0
SIGNS_AFTER = timedelta(seconds=30)
"""Three looks."""


class SharedKeyRing:
    """The active keys as SQL has them; ``open`` is the way in."""

    def __init__(
        self, store: LinkKeyStore, held: Sequence[StoredLinkKey], clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._held = held
        self._clock = clock

    @classmethod
    async def open(cls, store: LinkKeyStore, file: Path, clock: Callable[[], datetime]) -> SharedKeyRing:
        """The keys in SQL; where there are none, those of an earlier release's file, else a new one.

        Raises:
            DatabaseUnavailable: the database does not work.
            OSError: the file cannot be read.
            ValueError, KeyError, TypeError: the file is not a key ring.
        """
        held = await store.keys()
        if not held:
            first = [LinkKey(1, secrets.token_bytes(KEY_BYTES))]
            with suppress(FileNotFoundError):
                first = [*reversed(KeyRing(file, is_ours=False).keys())]
            held = await store.begin(first)
        return cls(store, held, clock)

    def keys(self) -> tuple[LinkKey, ...]:
        """The active keys, the one that signs first."""
        active = self._held[:ACTIVE_KEYS]
        known_since = self._clock() - SIGNS_AFTER
        signs = next((one for one in active if one.made_at <= known_since), active[-1])
        return tuple(
            LinkKey(one.number, one.secret) for one in (signs, *(one for one in active if one is not signs))
        )

    async def refresh(self) -> None:
        """Look at SQL again.

        Raises:
            DatabaseUnavailable: the database does not work; the keys stay as they are.
        """
        self._held = await self._store.keys() or self._held

    async def rotate(self, actor: str) -> None:
        """Sign with a new key within half a minute; links of the key before it still open, older ones end."""
        await self._store.add(secrets.token_bytes(KEY_BYTES), ACTIVE_KEYS, actor)
        await self.refresh()
