"""The folder of a chat channel exists from its first question on, also without a welcome."""

from __future__ import annotations

from pathlib import Path

from harness.empty_homes import make_sqlite

from bot.answers.understanding.channel_documents import ChannelView
from bot.answers.understanding.channel_folders import ChannelFolders
from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.folders.folders import Folders
from storage.models import ChannelKey, Platform
from storage.sql.database import Database

CHAT, LOCAL = ChannelKey(Platform("slack"), "T1", "C1"), ChannelKey(Platform.LOCAL, "", "it")


async def test_an_empty_chat_channel_gets_its_folder(tmp_path: Path) -> None:
    """A channel that had the bot before ``serve`` ran got no welcome; direct and local ones get none."""
    database = await Database.open(make_sqlite(tmp_path / "home"))
    channels, inbox = Channels(database), tmp_path / "inbox"
    inbox.mkdir()
    places = {}
    for key, is_direct in ((CHAT, False), (LOCAL, False), (ChannelKey(Platform("slack"), "T1", "D1"), True)):
        channel = await channels.ensure(key, is_direct=is_direct)
        view = ChannelView(Catalog(database), channel, ChannelFolders(Folders(database), inbox))
        places[key] = Path(await view.folder())
    assert [place.is_dir() for place in places.values()] == [True, False, False]
    assert list(inbox.iterdir()) == [places[CHAT]]
    await database.aclose()
