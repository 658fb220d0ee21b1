"""Detection of lost index files: deleted, or missing from a copy of the home."""

from __future__ import annotations

import logging

from sqlalchemy import exists, select
from sqlmodel import col

from storage.index.embedded.index import EmbeddedIndex
from storage.models import TenantName
from storage.sql.database import Database
from storage.sql.tables import ChannelRow, PublicationRow

_log = logging.getLogger(__name__)


class TenantCheck:
    """Detects channels whose index file is lost and makes the reconciler start at once."""

    def __init__(self, database: Database, index: EmbeddedIndex) -> None:
        self._database = database
        self._index = index
        self._lost: set[TenantName] = set()

    async def has_all(self) -> bool:
        """True if every channel with live publications has its tenant.

        Raises:
            DatabaseUnavailable, IndexUnavailable: the check failed.
        """
        live = exists().where(
            col(PublicationRow.channel_id) == ChannelRow.id, col(PublicationRow.state) == "live"
        )
        rows = await self._database.rows(select(col(ChannelRow.tenant)).where(live))
        lost = {TenantName(row.tenant) for row in rows} - await self._index.tenants()
        if lost - self._lost:
            _log.warning("index files of %d channels are missing; republishing", len(lost))
            self._index.note_outage()
        self._lost = lost
        return not lost
