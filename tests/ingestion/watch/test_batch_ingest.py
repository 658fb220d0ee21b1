"""``footnote ingest``: ingests one folder or file once, with progress, next to a running service."""

import re
from pathlib import Path

import pytest
from harness.ingestion_home import Home
from samples.paper import pdf

from storage.documents.progress import Progress
from storage.errors import BlobsUnavailable, SettingsError
from storage.models import Rung
from storage.sql.tables import ReadingRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
TRAVEL = pdf("Travel\nTickets are booked by the zeppelin desk.", "Hotels\nA room costs ninety ducats.")


def put(folder: Path, **files: bytes) -> Path:
    """Write these PDFs into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / f"{name}.pdf").write_bytes(data)
    return folder


async def test_a_folder_is_ingested_until_live_with_progress(home: Home, tmp_path: Path) -> None:
    """Covers the reported numbers from start to end."""
    told: list[Progress] = []
    docs = put(tmp_path / "docs", leave=LEAVE, travel=TRAVEL)
    result = await home.ingestion().ingest(docs, await home.channel("hr"), Rung.QUICK, told.append)
    assert (result.files, result.live, result.pages, result.quarantined) == (2, 2, 3, ())
    first, last = told[0], told[-1]
    assert (first.files, first.quick.files_done, first.quick.seconds_left) == (2, 0, None)
    assert (last.quick.files_done, last.quick.pages_done, last.quick.seconds_left) == (2, 3, 0.0)
    assert (last.waiting, last.pages, last.has_reached(Rung.QUICK)) == (0, 3, True)
    assert set(await home.find("hr", "zeppelin")) == {"travel.pdf"}
    assert {row.rung for row in await home.rows(ReadingRow)} == {"quick", "full"}


async def test_waiting_for_full_waits_for_vectors(home: Home, tmp_path: Path) -> None:
    await home.ingest(put(tmp_path / "docs", leave=LEAVE), "hr", Rung.FULL)
    assert (await home.documents("hr"))["leave.pdf"].rung is Rung.FULL


async def test_a_second_run_adds_and_replaces_but_never_deletes(home: Home, tmp_path: Path) -> None:
    """Shows that a file deleted from an unwatched folder stays live."""
    docs = put(tmp_path / "docs", leave=LEAVE, travel=TRAVEL)
    await home.ingest(docs, "hr")
    (docs / "travel.pdf").unlink()
    put(docs, leave=pdf("Leave\nThirty days of nougat."), third=pdf("Third\nA word about halva."))
    result = await home.ingest(docs, "hr")
    assert result.files == 2
    assert set(await home.find("hr", "zeppelin")) == {"travel.pdf"}
    assert set(await home.find("hr", "nougat")) == {"leave.pdf"}
    assert set(await home.find("hr", "halva")) == {"third.pdf"}
    assert await home.find("hr", "marzipan") == {}


async def test_a_run_without_changes_reads_no_file(home: Home, tmp_path: Path) -> None:
    docs = put(tmp_path / "docs", leave=LEAVE)
    await home.ingest(docs, "hr")
    (before,) = (row for row in await home.rows(ReadingRow) if row.rung == "quick")
    result = await home.ingest(docs, "hr")
    assert (result.files, result.live) == (1, 1)
    (after,) = (row for row in await home.rows(ReadingRow) if row.rung == "quick")
    assert (after.fence, after.done_at) == (before.fence, before.done_at)


async def test_a_single_file_is_ingested_without_its_neighbours(home: Home, tmp_path: Path) -> None:
    """Shows that its folder can be ingested later."""
    docs = put(tmp_path / "docs", leave=LEAVE, travel=TRAVEL)
    assert (await home.ingest(docs / "leave.pdf", "hr")).files == 1
    assert set(await home.documents("hr")) == {"leave.pdf"}
    assert (await home.ingest(docs, "hr")).files == 2
    assert set(await home.documents("hr")) == {"leave.pdf", "travel.pdf"}


@pytest.mark.parametrize("name", ["hostname", "notes.txt", "._leave.pdf"])
async def test_a_file_with_another_extension_is_refused(home: Home, tmp_path: Path, name: str) -> None:
    """Shows that a mistyped path ends with a message instead of an empty ingestion."""
    (tmp_path / name).write_bytes(LEAVE)
    with pytest.raises(SettingsError, match=f"^{re.escape(name)} is "):
        await home.ingest(tmp_path / name, "hr")


async def test_an_empty_folder_is_accepted(home: Home, tmp_path: Path) -> None:
    assert (await home.ingest(put(tmp_path / "docs"), "hr")).files == 0


async def test_an_unreadable_file_is_reported_with_its_reason(home: Home, tmp_path: Path) -> None:
    """Shows that a bad file ends as a line of the report, not as an error."""
    docs = put(tmp_path / "docs", leave=LEAVE, page=b"<html></html>" * 50)
    result = await home.ingest(docs, "hr", rest_seconds=1)
    assert (result.files, result.live) == (2, 1)
    ((file, reason),) = result.quarantined
    assert file == "page.pdf"
    assert reason


async def test_each_first_level_folder_of_a_root_becomes_a_channel(home: Home, tmp_path: Path) -> None:
    """Loose PDFs are skipped and reported."""
    put(tmp_path / "root" / "hr", leave=LEAVE)
    put(tmp_path / "root" / "travel", travel=TRAVEL)
    put(tmp_path / "root", loose=LEAVE)
    result = await home.ingestion().ingest_root(tmp_path / "root", Rung.QUICK, lambda progress: None)
    assert (result.files, result.live, result.skipped) == (2, 2, ("loose.pdf",))
    assert set(await home.documents("hr")) == {"leave.pdf"}
    assert set(await home.documents("travel")) == {"travel.pdf"}


async def test_a_folder_that_cannot_be_listed_is_reported(home: Home, tmp_path: Path) -> None:
    with pytest.raises(BlobsUnavailable, match="missing"):
        await home.ingest(tmp_path / "nowhere", "hr")
