"""Channels with documents in any state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from fakes.document_shelf import Shelf

from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.models import ChannelKey, Platform
from storage.sql.database import Database
from storage.sql.tables import FolderRow


@pytest.fixture
def shelf_of(database: Database) -> Callable[[str], Awaitable[Shelf]]:
    """A factory of local channels with one folder each."""

    async def make(name: str) -> Shelf:
        channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", name))
        folder = FolderRow(channel_id=channel.id, location=f"/inbox/{name}", watched=True)
        shelf = Shelf(database, channel.id, 0)
        await shelf.add(folder)
        return Shelf(database, channel.id, folder.id)

    return make


@pytest.fixture
async def shelf(shelf_of: Callable[[str], Awaitable[Shelf]]) -> Shelf:
    """The default channel."""
    return await shelf_of("it")


@pytest.fixture
def catalog(database: Database) -> Catalog:
    """The catalog of the same database."""
    return Catalog(database)
