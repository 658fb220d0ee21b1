"""A bucket as a watched folder in the map, on a real server with outages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from engines.s3 import Bucket, RealS3
from harness.ingestion_home import Home
from samples.paper import pdf

from storage.sql.tables import FolderRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
LEAVE_2 = pdf("Leave\nEmployees get thirty days of nougat leave a year.")
TRAVEL = pdf("Travel\nTickets are booked by the zeppelin desk.")

pytestmark = pytest.mark.engine("s3")


@pytest.fixture
def bucket(s3_server: RealS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket with its credentials in the environment; the server is restarted afterwards."""
    for name, value in s3_server.settings.items():
        monkeypatch.setenv(name.upper(), value)
    monkeypatch.setenv("FOOTNOTE_SHARE_TIMEOUT", "5")
    yield s3_server.place()
    s3_server.kill()
    s3_server.start()


async def watch(home: Home, bucket: Bucket) -> None:
    """Watch the bucket for one channel."""
    home.path.mkdir(exist_ok=True)
    (home.path / "folders.toml").write_text(
        f'[[folder]]\nlocation = "{bucket.location}"\nchannel = "hr"\nevery = 0.5\n'
    )
    await home.ingestion(rest_seconds=1, stop_at="quick").start(home.inbox, home.path / "folders.toml")


async def problem(home: Home) -> Any:
    """Return the problem of the bucket's folder."""
    return next((row.problem for row in await home.rows(FolderRow) if row.location.startswith("s3://")), None)


@pytest.mark.long
async def test_objects_of_a_bucket_are_live_and_follow_changes(home: Home, bucket: Bucket) -> None:
    """Covers an object, its new version, its new name and its deletion."""
    bucket.put("leave.pdf", LEAVE)
    bucket.put("deep/travel.pdf", TRAVEL)
    bucket.put("more/travel.pdf", pdf("Trains\nThe gondola leaves at noon."))
    await watch(home, bucket)
    first = await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("hr", "zeppelin", "deep/travel.pdf")
    bucket.put("leave.pdf", LEAVE_2)
    second = await home.until_found("hr", "nougat", "leave.pdf")
    assert second.document_id == first.document_id
    bucket.rename("leave.pdf", "holidays.pdf")
    third = await home.until_found("hr", "nougat", "holidays.pdf")
    assert third.document_id == first.document_id
    bucket.remove("more/travel.pdf")

    async def is_gone() -> bool:
        return not await home.find("hr", "gondola")

    await home.until(is_gone)


@pytest.mark.long
async def test_an_unavailable_bucket_loses_nothing_and_recovers(home: Home, bucket: Bucket) -> None:
    """Shows that an outage pauses deletions and is reported."""
    bucket.put("leave.pdf", LEAVE)
    bucket.put("travel.pdf", TRAVEL)
    await watch(home, bucket)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("hr", "zeppelin", "travel.pdf")
    bucket.kill()

    async def is_outage() -> bool:
        return await problem(home) is not None

    await home.until(is_outage)
    assert set(await home.find("hr", "marzipan")) == {"leave.pdf"}
    assert {one.state for one in (await home.documents("hr")).values()} == {"live"}
    bucket.start()
    bucket.put("new.pdf", LEAVE_2)
    await home.until_found("hr", "nougat", "new.pdf")

    async def is_well() -> bool:
        return await problem(home) is None

    await home.until(is_well)
    assert set(await home.documents("hr")) == {"leave.pdf", "travel.pdf", "new.pdf"}
