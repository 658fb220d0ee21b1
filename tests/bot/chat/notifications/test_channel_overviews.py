"""Overviews of channels for their members."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.notice_shelf import open_shelf
from harness.empty_homes import make_sqlite

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.notifications.welcome import MAX_CHANNELS, ChannelOverviews
from storage.chat.channels import Channels, DirectLibrary
from storage.chat.notifications import Notices
from storage.documents.catalog import Catalog
from storage.models import ChannelKey, Platform, TenantName
from storage.sql.database import Database


def key(conversation: str) -> ChannelKey:
    """Return a Slack channel."""
    return ChannelKey(Platform("slack"), "T1", conversation)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Yield a fresh database."""
    database = await Database.open(make_sqlite(tmp_path))
    yield database
    await database.aclose()


async def test_only_given_channels_with_documents_are_shown(database: Database) -> None:
    """Unknown channels are not created; new documents and suggested questions are part of the overview."""
    shelf = await open_shelf(database, key("C0IT"))
    await shelf.publish(await shelf.add("backup.pdf"))
    hidden = await open_shelf(database, key("C0HR"))
    await hidden.publish(await hidden.add("secret.pdf"))
    channels = Channels(database)
    await channels.ensure(key("C0IT"), "#it-ops")
    await channels.ensure(key("C0EMPTY"))
    (notice,) = await shelf.notices.recent(shelf.channel.id, 1)
    await shelf.notices.store_questions(notice.id, ["When?", "When?", "Who?"])
    overviews = ChannelOverviews(channels, DirectLibraries(channels), Catalog(database), Notices(database))
    asked = {key(one).tenant for one in ("C0IT", "C0EMPTY", "C0NEW")}
    (shown,) = await overviews.read(asked)
    assert (shown.name, shown.tenant) == ("#it-ops", key("C0IT").tenant)
    assert "backup.pdf" in shown.documents
    assert shown.questions == ("When?", "Who?")
    assert await overviews.read(set()) == []
    assert len(await channels.all()) == 3


async def test_a_direct_chat_shows_its_librarys_questions(database: Database) -> None:
    """The list is empty without a library, and never has documents of an ordinary channel."""
    shelf = await open_shelf(database, key("C0IT"))
    await shelf.publish(await shelf.add("backup.pdf"))
    (notice,) = await shelf.notices.recent(shelf.channel.id, 1)
    await shelf.notices.store_questions(notice.id, ["When?"])
    channels = Channels(database)
    overviews = ChannelOverviews(channels, DirectLibraries(channels), Catalog(database), Notices(database))
    assert await overviews.direct_questions(Platform("slack"), "T1") == ()
    await channels.set_direct_library(DirectLibrary(await channels.ensure_library("handbook")))
    assert await overviews.direct_questions(Platform("slack"), "T1") == ()
    await channels.set_direct_library(DirectLibrary(shelf.channel))
    assert await overviews.direct_questions(Platform("slack"), "T1") == ("When?",)
    libraries = DirectLibraries(channels, {Platform("slack")})
    of_strangers = ChannelOverviews(channels, libraries, Catalog(database), Notices(database))
    assert await of_strangers.direct_questions(Platform("slack"), "T1") == ()


async def test_a_home_is_limited_to_ten_channels(database: Database) -> None:
    """Only the first ten channels are shown."""
    tenants: set[TenantName] = set()
    for number in range(MAX_CHANNELS + 2):
        shelf = await open_shelf(database, key(f"C0N{number}"))
        await shelf.add("a.pdf", state="waiting")
        tenants.add(shelf.channel.tenant)
    overviews = ChannelOverviews(
        Channels(database), DirectLibraries(Channels(database)), Catalog(database), Notices(database)
    )
    assert len(await overviews.read(tenants)) == MAX_CHANNELS
