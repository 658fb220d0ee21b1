"""Locked PDFs in watched folders: they go live once their folder has the password, which never leaks."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest
from harness.clocks import advance_clocks
from harness.ingestion_home import Home
from samples.locks import lock
from samples.paper import pdf

from ingestion.app import Ingestion
from storage.folders.folder_passwords import FolderPasswords
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings
from storage.sql.tables import ReadingRow

SECRET, OTHER = "marmalade-4711", "quince-0815"
LEAVE = lock(pdf("Leave\nEmployees get twenty five days of marzipan leave a year."), SECRET)
TRAVEL = lock(pdf("Travel\nTickets are booked by the zeppelin desk."), OTHER)


def entry(location: Path, channel: str, *references: str) -> str:
    """Return a folder entry of a map."""
    return f'[[folder]]\nlocation = "{location}"\nchannel = "{channel}"\npasswords = {list(references)}\n'


async def serve(home: Home, text: str) -> Ingestion:
    """Start an ingestion with this map, up to the quick rung."""
    home.path.mkdir(exist_ok=True)
    path = home.path / "folders.toml"
    path.write_text(text)
    started = home.ingestion(stop_at="quick")
    await started.start(home.inbox, path)
    return started


def share(folder: Path, **files: bytes) -> Path:
    """Create a folder with these files."""
    folder.mkdir()
    for name, data in files.items():
        (folder / f"{name}.pdf").write_bytes(data)
    return folder


async def until_quarantined(home: Home, channel: str, file: str, words: str) -> None:
    """Wait until a file is quarantined for a reason with these words."""

    async def is_quarantined() -> bool:
        found = (await home.documents(channel)).get(file)
        return found is not None and found.state == "quarantined" and words in (found.reason or "")

    await home.until(is_quarantined)


async def test_a_locked_file_is_live_once_the_map_has_its_password(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a list, with a wrong one and with the right one, without a restart or a new drop."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HR_PDF_PASSWORD", SECRET)
    monkeypatch.setenv("OLD_PDF_PASSWORD", OTHER)
    place, path = share(tmp_path / "hr", leave=LEAVE), home.path / "folders.toml"
    await serve(home, entry(place, "hr"))
    await until_quarantined(home, "hr", "leave.pdf", "ask an admin to give its folder the right one")
    path.write_text(entry(place, "hr", "env:OLD_PDF_PASSWORD"))
    await until_quarantined(home, "hr", "leave.pdf", "the one that was given for it does not open it")
    path.write_text(entry(place, "hr", "env:OLD_PDF_PASSWORD", "env:HR_PDF_PASSWORD"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    (reading,) = await home.rows(ReadingRow)
    assert (reading.state, reading.locked) == ("done", False)
    page = await home.pdf.render(home.blobs.path(reading.sha256), 1, 72)
    assert page.media_type == "image/png"
    kept = b"".join(file.read_bytes() for file in home.path.rglob("*") if file.is_file())
    for secret in (SECRET, OTHER):
        assert secret.encode() not in kept
        assert secret not in caplog.text
    assert b"env:HR_PDF_PASSWORD" in kept  # SQL holds the references


@pytest.mark.long
async def test_the_passwords_of_one_folder_open_no_other(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file opens once it is moved to the folder with its password."""
    monkeypatch.setenv("HR_PDF_PASSWORD", SECRET)
    monkeypatch.setenv("IT_PDF_PASSWORD", OTHER)
    hr = share(tmp_path / "hr", leave=LEAVE, travel=TRAVEL)
    it = share(tmp_path / "it")
    await serve(home, entry(hr, "hr", "env:HR_PDF_PASSWORD") + entry(it, "it", "env:IT_PDF_PASSWORD"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    await until_quarantined(home, "hr", "travel.pdf", "does not open it")
    (it / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("it", "zeppelin", "travel.pdf")
    await until_quarantined(home, "hr", "travel.pdf", "does not open it")
    assert not await home.find("hr", "zeppelin")


async def test_each_folder_needs_the_password_of_a_shared_file(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file in two folders, across a restart: a channel without it sees neither text nor title."""
    monkeypatch.setenv("HR_PDF_PASSWORD", SECRET)
    hr, it = share(tmp_path / "hr", leave=LEAVE), share(tmp_path / "it")
    path, own = home.path / "folders.toml", entry(hr, "hr", "env:HR_PDF_PASSWORD")
    serving = await serve(home, own + entry(it, "it"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    (it / "leave.pdf").write_bytes(LEAVE)
    await until_quarantined(home, "it", "leave.pdf", "opens only with a password")
    await serving.stop()
    await serve(home, own + entry(it, "it"))
    await until_quarantined(home, "it", "leave.pdf", "opens only with a password")
    assert not await home.find("it", "marzipan")
    shown = (await home.documents("it"))["leave.pdf"]
    assert (shown.title, shown.pages, shown.metadata) == ("leave.pdf", 0, {})
    path.write_text(own + entry(it, "it", "env:HR_PDF_PASSWORD"))
    await home.until_found("it", "marzipan", "leave.pdf")
    assert (await home.documents("it"))["leave.pdf"].state == "live"


@pytest.mark.long
async def test_an_older_version_stays_live_while_the_newer_is_locked(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is replaced by a locked one that another channel can open, then moved there."""
    monkeypatch.setenv("HR_PDF_PASSWORD", SECRET)
    hr = share(tmp_path / "hr", leave=LEAVE)
    it = share(tmp_path / "it", plan=pdf("Plan\nThe old plan names a walrus."))
    await serve(home, entry(hr, "hr", "env:HR_PDF_PASSWORD") + entry(it, "it"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("it", "walrus", "plan.pdf")
    (it / "plan.pdf").write_bytes(LEAVE)

    async def is_refused() -> bool:
        found = (await home.documents("it"))["plan.pdf"]
        return "a newer version could not be read: the PDF opens only" in (found.reason or "")

    await home.until(is_refused)
    assert list(await home.find("it", "walrus")) == ["plan.pdf"]
    assert not await home.find("it", "marzipan")


@pytest.mark.long
async def test_the_inbox_and_ingest_use_the_passwords_of_the_settings(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers a restart with the setting, and ``ingest`` of a file that was unreadable before."""
    place = share(tmp_path / "hr", leave=LEAVE)
    assert (await home.ingest(place, "once", stop_at="quick")).quarantined
    home.drop("hr/leave.pdf", LEAVE)
    serving = await home.serve(stop_at="quick")
    await until_quarantined(home, "hr", "leave.pdf", "ask an admin")
    await serving.stop()
    monkeypatch.setenv("HR_PDF_PASSWORD", SECRET)
    home.passwords = FolderPasswords(home.database, ("env:HR_PDF_PASSWORD",))
    before, home.pdf = home.pdf, PdfProcess(StorageSettings(), home.passwords)
    try:
        assert (await home.ingest(place, "once", stop_at="quick")).live == 1
        await home.serve(stop_at="quick")
        await home.until_found("hr", "marzipan", "leave.pdf")
    finally:
        await home.ingestions[-1].stop()
        await home.pdf.aclose()
        home.pdf = before


async def test_attempts_on_a_locked_file_are_limited(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that wrong passwords are retried as often as any failure."""
    monkeypatch.setenv("HR_PDF_PASSWORD", OTHER)
    await serve(home, entry(share(tmp_path / "hr", leave=LEAVE), "hr", "env:HR_PDF_PASSWORD"))
    await until_quarantined(home, "hr", "leave.pdf", "does not open it")
    (before,) = await home.rows(ReadingRow)
    with advance_clocks(timedelta(minutes=1)):
        await asyncio.sleep(1)  # several ticks of the workers
    (after,) = await home.rows(ReadingRow)
    assert (after.fence, after.state, after.locked) == (before.fence, "failed", True)
