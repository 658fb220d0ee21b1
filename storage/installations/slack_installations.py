"""Slack workspaces that installed the app, with their sealed tokens.

What is sealed is opened elsewhere: here it is bytes. A token is renewed by one process at a time, which takes
the row for a while first; whatever it gets is kept only while the row holds what was renewed, so that neither
a removed app comes back nor a newer installation is written over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Update, delete, select, update
from sqlmodel import col

from storage.clock import utc_now
from storage.sql.database import Database
from storage.sql.leases import has_no_lease
from storage.sql.tables import ChannelRow, SlackInstallationRow


@dataclass(frozen=True, slots=True)
class SlackInstallation:
    """What is kept of one."""

    # As in the keys of its channels: the organisation's id of an org-wide install, else the workspace's.
    installation: str
    name: str
    bot_user: str
    # The tokens, encrypted.
    sealed: bytes
    # When the token ends; None: never.
    expires_at: datetime | None
    installed_at: datetime
    # Why the token could not be renewed.
    problem: str | None = None


class SlackInstallations:
    """Keeps installations; every read is fresh, so that what was removed is used no more by anybody."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, installed: SlackInstallation) -> None:
        """Keep an installation in place of the one before.

        Raises:
            DatabaseUnavailable: nothing was kept.
        """
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
        """One installation; None: there is none, or none any more.

        Raises:
            DatabaseUnavailable: nobody knows just now.
        """
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
        """Erase an installation with its tokens and return it; None: there is none so old.

        Its channels are left by that, each as if the bot had been taken out of it.

        Args:
            installation: which one.
            until: an installation made later than this stays.

        Raises:
            DatabaseUnavailable: nothing was erased.
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
        """Take an installation for so long, to renew its token; False: somebody else does, or did.

        Raises:
            DatabaseUnavailable: nothing was taken.
        """
        now = utc_now()
        is_free = has_no_lease(SlackInstallationRow.renewing_until, now, timedelta(seconds=2 * seconds))
        taken = _unchanged(held).where(is_free)
        return await self._change(taken.values(renewing_until=now + timedelta(seconds=seconds)))

    async def renew(self, held: SlackInstallation, sealed: bytes, expires_at: datetime | None) -> bool:
        """Keep other tokens in place of those that are ``held``; False: others are kept already, or none.

        Raises:
            DatabaseUnavailable: nothing was kept.
        """
        values = {"sealed": sealed, "expires_at": expires_at, "renewing_until": None, "problem": None}
        return await self._change(_unchanged(held).values(**values))

    async def note_problem(self, held: SlackInstallation, problem: str) -> None:
        """Keep why the tokens that are ``held`` could not be renewed; a sentence for an admin.

        Raises:
            DatabaseUnavailable: nothing was kept.
        """
        await self._change(_unchanged(held).values(problem=problem))

    async def _change(self, change: Update) -> bool:
        async with self._database.transaction(exclusive=False) as session:
            changed = change.returning(col(SlackInstallationRow.installation))
            return await session.scalar(changed) is not None


def _unchanged(held: SlackInstallation) -> Update:
    """Return the row, if it holds the very tokens that were read: no two sealings of anything are alike."""
    return update(SlackInstallationRow).where(
        col(SlackInstallationRow.installation) == held.installation,
        col(SlackInstallationRow.sealed) == held.sealed,
    )


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
