"""Leases on watched locations: one process at a time scans a location, however many channels it feeds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import select
from sqlmodel import col

from storage.clock import monotonic_seconds, utc_now
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue, is_running
from storage.sql.tables import FolderRow

# Part of a lease on which its holder relies; other processes wait for all of it.
TRUSTED_SHARE = 2 / 3


class FolderLeases:
    """Acquires and renews the right to scan locations for one owner.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        seconds: float,
        *,
        is_dead: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Lease locations to ``owner`` for ``seconds`` at a time.

        Args:
            owner: a name that no other process uses.
            seconds: time after which another process may take over a lease that was not renewed.
            is_dead: True if the process of that name has ended: its lease is taken over at once.
        """
        self._database = database
        self._rows = LeasedQueue(database, FolderRow, owner, seconds)
        self._owner = owner
        self.seconds = seconds
        self._is_dead = is_dead
        self._clock = clock
        self._trusted: dict[str, float] = {}

    def holds(self, location: str) -> bool:
        """True if this process may scan the location now; queries nothing."""
        return self._trusted.get(location, 0.0) > self._clock()

    async def acquire(self, location: str) -> bool:
        """Lease a location if no other process holds it."""
        query = select(FolderRow).where(col(FolderRow.location) == location)
        async with self._database.snapshot() as session:
            if any(self._is_anothers(row) for row in await session.scalars(query)):
                return False
        return await self._lease([location]) == {location}

    async def renew(self) -> None:
        """Extend all leases held; drop those that another process has taken over."""
        if self._trusted:
            ours = list(self._trusted)
            kept = await self._lease(ours)
            for location in set(ours) - kept:
                self._trusted.pop(location, None)

    def stop_renewing(self, location: str) -> None:
        """Stop renewing a lease and let it expire: a scan of ours may still be running."""
        self._trusted.pop(location, None)

    async def release(self, location: str | None = None) -> None:
        """Release one location, or all of them, so that no process has to wait for the lease to expire."""
        ours = [one for one in self._trusted if location in (None, one)]
        for one in ours:
            del self._trusted[one]
        if not ours:
            return
        is_held = col(FolderRow.location).in_(ours), col(FolderRow.lease_owner) == self._owner
        await self._rows.change(*is_held, lease_owner=None, lease_until=None)

    async def _lease(self, locations: list[str]) -> set[str]:
        """Lease the locations that are free or already ours, and return them."""
        # Trust is counted from before the transaction, so that waiting for it cannot extend it.
        begun = self._clock()
        query = select(FolderRow).where(col(FolderRow.location).in_(locations)).order_by(col(FolderRow.id))
        async with self._database.transaction(exclusive=False) as session:
            rows = list(await session.scalars(query.with_for_update()))
            taken = {row.location for row in rows if self._is_anothers(row)}
            for row in rows:
                if row.location not in taken:
                    row.lease_owner = self._owner
                    row.lease_until = self._rows.ends_at()
        leased = {row.location for row in rows} - taken
        self._trusted |= dict.fromkeys(leased, begun + TRUSTED_SHARE * self.seconds)
        return leased

    def _is_anothers(self, row: FolderRow) -> bool:
        """True if a living process holds the row; an end further ahead than any lease counts as past."""
        if row.lease_owner in (None, self._owner) or row.lease_until is None:
            return False
        is_held = is_running(row.lease_until, utc_now(), timedelta(seconds=2 * self.seconds))
        return is_held and not self._is_dead(str(row.lease_owner))
