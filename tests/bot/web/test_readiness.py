"""Readiness: checks each dependency of answering in bounded time, and names those that fail."""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.web_house import House, make_pdf

from bot.answers.citations.signed_links import KeyRing, Links
from bot.app import ChatPlatforms
from bot.settings import BotSettings, Settings
from bot.web.figure_images import FigureImages
from bot.web.readiness import DEFAULT_REASONS, Readiness
from ingestion.settings import IngestionSettings
from storage.clock import utc_now
from storage.errors import BlobsUnavailable, DatabaseUnavailable
from storage.files.blobs import Blobs
from storage.index.embedded.index import EmbeddedIndex
from storage.index.embedded.tenant_check import TenantCheck
from storage.settings import StorageSettings
from storage.sql.database import Database


async def works() -> bool:
    """Report a healthy part."""
    return True


async def test_failing_and_slow_parts_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Covers every way not to be ready; the log has each change once, without the error's text."""
    asked = 0

    async def hangs() -> bool:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        return True

    async def fails() -> bool:
        raise OSError("marmalade")

    async def says_no() -> bool:
        return False

    checks = {"sql": works, "index": fails, "blobs": hangs, "slack": says_no}
    with caplog.at_level(logging.INFO):
        async with aclosing(Readiness(checks, seconds=0.01)) as readiness:
            for _ in range(3):
                assert await readiness.not_ready() == ["index", "blobs", "slack"]
            assert (await readiness.reasons())["blobs"] == "no answer within 0.01 s"
    assert asked == 1
    assert caplog.text.count("not ready: blobs: no answer") == 1
    assert "marmalade" not in caplog.text


async def test_a_recovered_part_is_ready_again() -> None:
    """Shows that a recovered part is ready at once."""
    is_well = False

    async def check() -> bool:
        return is_well

    async with aclosing(Readiness({"slack": check})) as readiness:
        assert await readiness.not_ready() == ["slack"]
        is_well = True
        assert await readiness.not_ready() == []


def with_bot(bot: BotSettings) -> Settings:
    """Return the settings of a bot, with defaults for all else."""
    return Settings(StorageSettings(), bot, IngestionSettings())


async def test_a_slack_whose_socket_is_not_connected_is_not_ready(house: House) -> None:
    """Shows that a service that gets no events is named so, if Slack is configured."""
    nowhere = BotSettings(
        slack_bot_token="xoxb-test", slack_app_token="xapp-test", slack_api_url="http://127.0.0.1:9/api/"
    )
    draw = FigureImages(house.links, house.stores, house.images()).draw
    platforms = ChatPlatforms(with_bot(nowhere), house.stores, house.answering, house.links, draw)
    await platforms.start()
    async with aclosing(Readiness(platforms.checks)) as readiness:
        assert await readiness.not_ready() == ["slack"]
    await platforms.stop()
    assert (
        ChatPlatforms(with_bot(BotSettings()), house.stores, house.answering, house.links, draw).checks == {}
    )


async def test_a_locked_database_is_not_ready(tmp_path: Path) -> None:
    """Shows that a database that accepts no writes is noticed, not only one that is gone."""
    url = f"sqlite:///{tmp_path}/footnote.db"
    async with aclosing(await Database.open(url)) as holder:
        async with aclosing(await Database.open(url, busy_seconds=0.05)) as database:
            await database.ping()
            async with holder.transaction():
                with pytest.raises(DatabaseUnavailable):
                    await database.ping()


def test_blobs_that_cannot_be_written_are_not_ready(tmp_path: Path) -> None:
    """Shows that a missing folder is noticed, and that the check leaves no file behind."""
    blobs = Blobs(tmp_path / "blobs")
    blobs.ping()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    shutil.rmtree(tmp_path / "blobs")
    with pytest.raises(BlobsUnavailable):
        blobs.ping()


async def test_a_lost_index_file_is_noticed_and_checked_at_once(house: House) -> None:
    """Shows that one channel's loss is reported, and starts a single comparison instead of one per check."""
    channel = await house.channel("alpha")
    await house.shelve(channel, "a.pdf", make_pdf([["one"]]))
    async with aclosing(EmbeddedIndex(house.home / "index", 10)) as index:
        check = TenantCheck(house.database, index)
        async with aclosing(Readiness({"tenants": check.has_all})) as readiness:
            for _ in range(2):
                assert await readiness.reasons() == {"tenants": DEFAULT_REASONS["tenants"]}
            assert index.outages == 1
            await index.ensure_tenant(channel.tenant)
            assert await readiness.reasons() == {}
            shutil.rmtree(house.home / "index")
            (house.home / "index").mkdir()
            assert await readiness.not_ready() == ["tenants"]
            assert index.outages == 2


async def test_a_reason_says_what_an_admin_can_fix() -> None:
    """Shows SQL's own messages, and a full disk behind any error."""

    async def locked() -> bool:
        raise DatabaseUnavailable("the database is locked by another program")

    async def full() -> bool:
        raise BlobsUnavailable("marmalade") from OSError(errno.ENOSPC, "marmalade")

    async def away() -> bool:
        raise BlobsUnavailable("marmalade")

    async with aclosing(Readiness({"sql": locked, "blobs": full, "index": away})) as readiness:
        assert await readiness.reasons() == {
            "sql": "the database is locked by another program",
            "blobs": "the disk is full",
            "index": DEFAULT_REASONS["index"],
        }


async def test_missing_link_keys_are_named(tmp_path: Path) -> None:
    """Shows that the mounted key file is checked each time, as each answer needs it."""
    file = tmp_path / "keys.json"
    KeyRing(file).keys()
    links = Links(KeyRing(file, is_ours=False), "http://127.0.0.1", timedelta(days=7), utc_now)
    async with aclosing(Readiness({"keys": lambda: asyncio.to_thread(links.has_keys)})) as readiness:
        assert await readiness.reasons() == {}
        file.unlink()
        assert await readiness.reasons() == {"keys": DEFAULT_REASONS["keys"]}
