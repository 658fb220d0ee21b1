"""Slack workspaces that installed the app, with their encrypted tokens.

Tokens are opaque bytes here. One process at a time renews a token, after leasing its row; the new tokens are
stored only if the row still holds the old ones, so that a removed app does not come back and a newer
installation is not overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, select, update
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import ChannelRow, SlackInstallationRow


@dataclass(frozen=True, slots=True)
class SlackInstallation:
    """Installation of the app."""

    # As in the keys of its channels: the organisation's id of an org-wide install, else the workspace's.
    installation: str
    name: str
    bot_user: str
    # The tokens, encrypted.
    sealed: bytes
    # When the token expires; None: never.
    expires_at: datetime | None
    installed_at: datetime
    # Why the token could not be renewed.
    problem: str | None = None


class SlackInstallations:
    """Stores installations; reads are never cached, so that a removed one is used no more.

    Calls raise DatabaseUnavailable if the database does not work; then nothing is changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = LeasedQueue(database, SlackInstallationRow, until="renewing_until")

    async def save(self, installed: SlackInstallation) -> None:
        """Upsert an installation."""
        row = SlackInstallationRow(
            installation=installed.installation,
            name=installed.name,
            bot_user=installed.bot_user,
            sealed=installed.sealed,
            expires_at=installed.expires_at,
            installed_at=installed.installed_at,
        )
        async with self._database.transaction() as session:
            await session.merge(row)

    async def get(self, installation: str) -> SlackInstallation | None:
        """Return an installation; None if there is none."""
        async with self._database.snapshot() as session:
            row = await session.get(SlackInstallationRow, installation)
        return _installation(row) if row else None

    async def all(self) -> list[SlackInstallation]:
        """Return every installation, by name."""
        query = select(SlackInstallationRow).order_by(
            col(SlackInstallationRow.name), col(SlackInstallationRow.installation)
        )
        async with self._database.snapshot() as session:
            return [_installation(row) for row in await session.scalars(query)]

    async def erase(self, installation: str, until: datetime) -> SlackInstallation | None:
        """Delete and return an installation with its tokens; None if there is none so old.

        Its channels are marked as left, as if the bot had been removed from each.

        Args:
            until: an installation made later than this stays.
        """
        gone = (
            delete(SlackInstallationRow)
            .where(col(SlackInstallationRow.installation) == installation)
            .where(col(SlackInstallationRow.installed_at) <= until)
            .returning(SlackInstallationRow)
        )
        async with self._database.transaction() as session:
            row = await session.scalar(gone)
            if row is None:
                return None
            own = col(ChannelRow.tenant).startswith(f"sl_{installation}_", autoescape=True)
            left = update(ChannelRow).where(own, col(ChannelRow.left_at).is_(None))
            await session.execute(left.values(left_at=utc_now()))
            return _installation(row)

    async def begin_renewal(self, held: SlackInstallation, seconds: float) -> bool:
        """Lease an installation to renew its token; False if another process does, or has."""
        until = self._rows.ends_at(seconds)
        return bool(await self._rows.change(self._rows.is_free(), *_unchanged(held), renewing_until=until))

    async def renew(self, held: SlackInstallation, sealed: bytes, expires_at: datetime | None) -> bool:
        """Replace the tokens ``held`` (compare-and-set); return False if others are stored, or none."""
        values = {"sealed": sealed, "expires_at": expires_at, "renewing_until": None, "problem": None}
        return bool(await self._rows.change(*_unchanged(held), **values))

    async def note_problem(self, held: SlackInstallation, problem: str) -> None:
        """Record why the tokens ``held`` could not be renewed; a message for an admin."""
        await self._rows.change(*_unchanged(held), problem=problem)


def _unchanged(held: SlackInstallation) -> tuple[ColumnElement[bool], ...]:
    """Select the row if it holds the tokens read: no two encryptions are equal."""
    own = col(SlackInstallationRow.installation) == held.installation
    return own, col(SlackInstallationRow.sealed) == held.sealed


def _installation(row: SlackInstallationRow) -> SlackInstallation:
    return SlackInstallation(
        row.installation,
        row.name,
        row.bot_user,
        row.sealed,
        row.expires_at,
        row.installed_at,
        row.problem,
    )
