"""Leases on watched places: one process at a time scans a place, whatever number of channels it feeds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import select
from sqlmodel import col

from storage.clock import steady_seconds, utc_now
from storage.sql.database import Database
from storage.sql.leases import is_running
from storage.sql.tables import FolderRow

# How much of a lease its holder relies on; only after all of it may another process come.
TRUSTED_SHARE = 2 / 3


class FolderLeases:
    """Takes and renews the right to scan places for one owner."""

    def __init__(
        self,
        database: Database,
        owner: str,
        seconds: float,
        *,
        is_dead: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """Lease places to ``owner`` for ``seconds`` at a time.

        Args:
            database: where the leases are written down.
            owner: a name no other process uses.
            seconds: after this time another process takes over what was not renewed.
            is_dead: whether the process of that name is surely gone: nobody waits for its lease.
            clock: seconds that never jump.
        """
        self._database = database
        self._owner = owner
        self.seconds = seconds
        self._is_dead = is_dead
        self._clock = clock
        self._trusted: dict[str, float] = {}

    def holds(self, location: str) -> bool:
        """True if we may scan the place now; asks nobody."""
        return self._trusted.get(location, 0.0) > self._clock()

    async def take(self, location: str) -> bool:
        """Lease a place if nobody else holds it.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        query = select(FolderRow).where(col(FolderRow.location) == location)
        async with self._database.snapshot() as session:
            if any(self._is_anothers(row) for row in await session.scalars(query)):
                return False
        return await self._lease([location]) == {location}

    async def renew(self) -> None:
        """Hold every place of ours for longer; what another process took meanwhile is its own.

        Raises:
            DatabaseUnavailable: the database does not work.
        """
        if self._trusted:
            ours = list(self._trusted)
            kept = await self._lease(ours)
            for location in set(ours) - kept:
                self._trusted.pop(location, None)

    def abandon(self, location: str) -> None:
        """Renew a place's lease no more, and leave it to run out: somebody may still scan it for us."""
        self._trusted.pop(location, None)

    async def release(self, location: str | None = None) -> None:
        """Give one place back, or all of them, so that nobody has to wait for the end of the lease."""
        ours = [one for one in self._trusted if location in (None, one)]
        for one in ours:
            del self._trusted[one]
        if not ours:
            return
        async with self._database.transaction(exclusive=False) as session:
            rows = await session.scalars(
                select(FolderRow).where(
                    col(FolderRow.location).in_(ours), col(FolderRow.lease_owner) == self._owner
                )
            )
            for row in rows:
                row.lease_owner = row.lease_until = None

    async def _lease(self, locations: list[str]) -> set[str]:
        """Lease the places that are free or ours, and return them."""
        begun = self._clock()
        query = select(FolderRow).where(col(FolderRow.location).in_(locations)).order_by(col(FolderRow.id))
        async with self._database.transaction(exclusive=False) as session:
            rows = list(await session.scalars(query.with_for_update()))
            taken = {row.location for row in rows if self._is_anothers(row)}
            for row in rows:
                if row.location not in taken:
                    row.lease_owner = self._owner
                    row.lease_until = utc_now() + timedelta(seconds=self.seconds)
        leased = {row.location for row in rows} - taken
        self._trusted |= dict.fromkeys(leased, begun + TRUSTED_SHARE * self.seconds)
        return leased

    def _is_anothers(self, row: FolderRow) -> bool:
        """True if a living process holds the row; an end that no lease reaches comes from a wrong clock."""
        if row.lease_owner in (None, self._owner) or row.lease_until is None:
            return False
        is_held = is_running(row.lease_until, utc_now(), timedelta(seconds=2 * self.seconds))
        return is_held and not self._is_dead(str(row.lease_owner))
