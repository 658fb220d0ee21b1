"""The real watched folder on real engines: drops, replacements, renames, deletions, outages."""

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.notice_shelf import recent_notices
from harness.clocks import shift_wall_clock
from harness.ingestion_home import Home
from samples.paper import locked_pdf, pdf

from ingestion.watch.dry_run import Previewer
from storage.errors import UnknownChannel
from storage.files.blobs import Blobs
from storage.folders.folders import Folders
from storage.models import Rung
from storage.queues.planner import plan
from storage.queues.purge import PurgeQueue
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, NoticeRow, PublicationRow, ReadingRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
LEAVE_2 = pdf("Leave\nEmployees get thirty days of nougat leave a year.")
TRAVEL = pdf(
    "Travel\nTickets are booked by the zeppelin desk.", "Hotels\nA room costs at most ninety ducats."
)
TRAVEL_2 = pdf("Travel\nTickets are booked by the submarine desk.")


async def test_a_dropped_pdf_is_live_by_words_and_then_with_vectors(home: Home) -> None:
    """Covers the whole path of one PDF through both rungs."""
    await home.serve()
    home.drop("hr/leave.pdf", LEAVE)
    quick = await home.until_found("hr", "marzipan", "leave.pdf")
    full = await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    assert full.document_id == quick.document_id
    vectors = await home.files.vectors(full.reading_id)
    assert vectors is not None
    assert vectors.shape == (full.chunks, home.embedder.dimensions)
    assert (await home.documents("hr"))["leave.pdf"].state == "live"


async def test_stopping_at_quick_computes_no_vectors(home: Home) -> None:
    """Shows the setting that saves the cost of the second rung."""
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await asyncio.sleep(1.5)
    assert [row.rung for row in await home.rows(ReadingRow)] == ["quick"]


async def test_a_folder_added_later_becomes_a_channel(home: Home) -> None:
    """Without a restart; nested folders belong to it."""
    await home.serve(stop_at="quick")
    await asyncio.sleep(0.5)
    home.drop("travel/2024/spring/rules.pdf", TRAVEL)
    await home.until_found("travel", "zeppelin", "2024/spring/rules.pdf")
    assert await home.find("hr", "zeppelin") == {}


async def test_a_folder_named_like_a_tenant_feeds_its_chat_channel(home: Home) -> None:
    """Shows that documents can be added before the Slack channel sends its first event."""
    await home.serve(stop_at="quick")
    home.drop("sl_T0001_C0002/leave.pdf", LEAVE)
    await home.until(lambda: home.rows(PublicationRow))
    (channel,) = await home.channels.all()
    assert (channel.platform, channel.tenant) == ("slack", "sl_T0001_C0002")


async def test_the_old_version_is_live_until_the_flip(home: Home) -> None:
    """Shows that exactly one version is live at any time."""
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    old = await home.until_found("hr", "leave days", "leave.pdf")
    home.index.is_down = True
    home.drop("hr/leave.pdf", LEAVE_2)
    await home.until(lambda: _count(home, ReadingRow, 2, state="done"))
    assert (await home.find("hr", "marzipan"))["leave.pdf"].id == old.id
    home.index.is_down = False
    new = await home.until_found("hr", "nougat", "leave.pdf")
    assert new.document_id == old.document_id
    assert await home.find("hr", "marzipan") == {}
    assert [row.state for row in await home.rows(PublicationRow)].count("live") == 1


@pytest.mark.long
async def test_a_replaced_publication_leaves_the_index_after_a_grace(home: Home) -> None:
    """Shows that running questions can finish, and that old publications do not pile up."""
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    old = await home.until_found("hr", "marzipan", "leave.pdf")
    home.drop("hr/leave.pdf", LEAVE_2)
    new = await home.until_found("hr", "nougat", "leave.pdf")
    tenant = (await home.channel("hr")).tenant

    async def is_gone() -> bool:
        return await home.index.publications(tenant) == {new.id: new.chunks}

    async def is_recorded() -> bool:
        states = {row.id: row.state for row in await home.rows(PublicationRow)}
        return states == {old.id: "removed", new.id: "live"}

    await home.until(is_gone)
    await home.until(is_recorded)


@pytest.mark.long
async def test_a_retirement_by_a_fast_clock_is_not_waited_for(home: Home) -> None:
    """Shows that the index is cleaned once the clock is right, and that a deletion can still be undone."""
    serving = await home.serve(stop_at="quick", delete_grace_seconds=3600)
    home.drop("hr/leave.pdf", LEAVE)
    path = home.drop("hr/travel.pdf", TRAVEL)
    await home.until_found("hr", "marzipan", "leave.pdf")
    travel = await home.until_found("hr", "zeppelin", "travel.pdf")
    with shift_wall_clock(timedelta(hours=2)):
        home.drop("hr/leave.pdf", LEAVE_2)
        await home.until_found("hr", "nougat", "leave.pdf")
        path.unlink()
        await home.until(lambda: _count(home, DocumentRow, 1, state="deleted"))
    await serving.purge()
    await home.until(lambda: _count(home, PublicationRow, 1, state="removed"))
    home.drop("hr/travel.pdf", TRAVEL)
    assert (await home.until_found("hr", "zeppelin", "travel.pdf")).document_id == travel.document_id


async def test_a_deleted_document_is_purged_after_its_grace(home: Home) -> None:
    """Shows that index, reading and blob are deleted, unless another document needs them."""
    serving = await home.serve(stop_at="quick", delete_grace_seconds=0)
    gone = home.drop("hr/travel.pdf", TRAVEL)
    home.drop("hr/leave.pdf", LEAVE)
    home.drop("lab/leave.pdf", LEAVE)
    for channel, words, file in (("hr", "zeppelin", "travel.pdf"), ("lab", "marzipan", "leave.pdf")):
        await home.until_found(channel, words, file)
    sha256 = (await home.documents("hr"))["travel.pdf"].version
    gone.unlink()
    await home.until(lambda: _count(home, PublicationRow, 1, state="removed"))
    await serving.purge()
    assert not home.blobs.path(sha256).exists()
    assert len(await home.rows(ReadingRow)) == 1
    assert set(await home.find("hr", "marzipan")) == {"leave.pdf"}
    assert home.blobs.path((await home.documents("lab"))["leave.pdf"].version).exists()


async def test_a_half_purged_document_does_not_come_back(home: Home) -> None:
    """Shows that a file returning after an interrupted purge is a new document: the old blobs are gone."""
    serving = await home.serve(stop_at="quick", delete_grace_seconds=0)
    home.drop("hr/leave.pdf", LEAVE)
    path = home.drop("hr/travel.pdf", TRAVEL)
    before = await home.until_found("hr", "zeppelin", "travel.pdf")
    await home.until_found("hr", "marzipan", "leave.pdf")
    path.write_bytes(TRAVEL_2)
    await home.until_found("hr", "submarine", "travel.pdf")
    path.unlink()
    await home.until(lambda: _count(home, PublicationRow, 2, state="removed"))
    await serving.stop()
    with pytest.raises(OSError, match="dies"):
        await _purge_that_dies(home)
    home.drop("hr/travel.pdf", TRAVEL_2)
    await home.serve(stop_at="quick")
    after = await home.until_found("hr", "submarine", "travel.pdf")
    assert after.document_id != before.document_id
    assert home.blobs.path(after.sha256).exists()
    source = await home.catalog.version_source(before.version_id)
    assert source is not None
    assert source.is_deleted


class DyingBlobs(Blobs):
    """Blobs of a process that crashes after one removal."""

    def remove(self, sha256: str) -> None:
        """Remove it, then crash."""
        super().remove(sha256)
        raise OSError("the process dies")


async def _purge_that_dies(home: Home) -> None:
    """Erase one blob, then crash before the next."""
    rows = LeasedQueue(home.database, PublicationRow, "a purge that dies", 5)
    await PurgeQueue(rows, 0, 0).drop_contents(DyingBlobs(home.path / "blobs"))


async def test_a_renamed_file_keeps_its_document_without_rereading(home: Home) -> None:
    """Shows that links and readings survive a rename, and that the new name is searchable."""
    await home.serve(stop_at="quick")
    path = home.drop("hr/leave.pdf", LEAVE)
    home.drop("hr/travel.pdf", TRAVEL)
    before = await home.until_found("hr", "marzipan", "leave.pdf")
    (home.inbox / "hr" / "policies").mkdir()
    path.rename(home.inbox / "hr" / "policies" / "holidays.pdf")
    after = await home.until_found("hr", "holidays", "policies/holidays.pdf")
    assert after.document_id == before.document_id
    assert after.version_id == before.version_id
    assert after.reading_id == before.reading_id
    assert set(await home.documents("hr")) == {"policies/holidays.pdf", "travel.pdf"}


@pytest.mark.parametrize("outage", ["inbox", "folder", "most of its files"])
async def test_an_outage_deletes_nothing_and_is_reported(
    home: Home, caplog: pytest.LogCaptureFixture, outage: str
) -> None:
    """Shows that a vanished mount never counts as a deletion, and that it recovers."""
    caplog.set_level(logging.WARNING)
    await home.serve(stop_at="quick")
    for number, text in enumerate(("alpha", "beta", "gamma")):
        home.drop(f"hr/{number}.pdf", pdf(f"Page\nThe word is {text}."))
    for number, text in enumerate(("alpha", "beta", "gamma")):
        await home.until_found("hr", text, f"{number}.pdf")
    moved = _move_aside(home, outage)
    await home.until_row(FolderRow, lambda row: row.problem)
    await asyncio.sleep(1)
    assert set(await home.find("hr", "word")) == {"0.pdf", "1.pdf", "2.pdf"}
    assert any("folder=" in record.message for record in caplog.records)
    assert not any(".pdf" in record.message for record in caplog.records)
    for there, aside in moved:
        aside.rename(there)
    await home.until_row(FolderRow, lambda row: not row.problem)
    assert set(await home.find("hr", "word")) == {"0.pdf", "1.pdf", "2.pdf"}


async def test_bad_files_are_quarantined_with_a_reason(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """Covers a web page named .pdf, a locked and a scanned file; other files are unaffected."""
    caplog.set_level(logging.INFO)
    await home.serve(stop_at="quick", rest_seconds=1)
    home.drop("hr/page.pdf", b"<html><body>canary</body></html>" * 50)
    home.drop("hr/empty.pdf", pdf(""))
    home.drop("hr/locked.pdf", locked_pdf("A secret."))
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until(lambda: _are_quarantined(home, "page.pdf", "empty.pdf", "locked.pdf"))
    documents = await home.documents("hr")
    assert "no text" in (documents["empty.pdf"].reason or "")
    assert "password" in (documents["locked.pdf"].reason or "")
    assert documents["page.pdf"].reason
    failed = [row for row in await home.rows(ReadingRow) if row.state == "failed"]
    assert [row.attempts for row in failed] == [3, 3, 3]
    named = [record.message for record in caplog.records if ".pdf" in record.message]
    assert all("cause=" in message for message in named), "only what failed is named"
    assert sum("outcome=quarantined" in message for message in named) == 3
    assert not any("canary" in record.message for record in caplog.records)


async def test_a_file_above_the_limit_is_quarantined_uncopied(home: Home) -> None:
    """Shows that the reason is in the document list, and that a smaller file replaces it."""
    serving = home.ingestion(max_file_mb=1, stop_at="quick")
    await serving.start(home.inbox)
    path = home.drop("hr/leave.pdf", LEAVE + b" " * 2_000_000 + b"%%EOF")
    await home.until(lambda: _are_quarantined(home, "leave.pdf"))
    assert "limit" in ((await home.documents("hr"))["leave.pdf"].reason or "")
    assert await home.rows(BlobRow) == []
    path.write_bytes(LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")


@pytest.mark.long
async def test_a_refused_file_is_retried_under_other_limits(home: Home) -> None:
    """Shows that raising the limit, as the message says, helps although the file does not change."""
    serving = home.ingestion(max_file_mb=1, stop_at="quick")
    await serving.start(home.inbox)
    home.drop("hr/leave.pdf", LEAVE + b" " * 2_000_000 + b"%%EOF")
    await home.until(lambda: _are_quarantined(home, "leave.pdf"))
    await serving.stop()
    await home.serve(stop_at="quick")
    await home.until_found("hr", "marzipan", "leave.pdf")


async def test_a_bad_replacement_keeps_the_old_version_live(home: Home) -> None:
    """Shows that quarantine applies to the new bytes only."""
    await home.serve(stop_at="quick", rest_seconds=1)
    home.drop("hr/leave.pdf", LEAVE)
    before = await home.until_found("hr", "marzipan", "leave.pdf")
    home.drop("hr/leave.pdf", b"<html></html>" * 50)
    await home.until(lambda: _count(home, ReadingRow, 1, state="failed"))
    assert (await home.find("hr", "marzipan"))["leave.pdf"] == before
    document = (await home.documents("hr"))["leave.pdf"]
    assert document.state == "live"
    assert document.reason


async def test_loose_pdfs_in_the_inbox_are_reported_once(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that a file in the wrong place is reported and belongs to no channel."""
    caplog.set_level(logging.WARNING)
    await home.serve(stop_at="quick")
    home.drop("canary.pdf", LEAVE)
    await asyncio.sleep(1.5)
    said = [record.message for record in caplog.records if "in the inbox" in record.message]
    assert len(said) == 1
    assert "canary" not in said[0]
    assert await home.rows(BlobRow) == []


async def test_unsupported_files_are_listed_and_announced_once(home: Home) -> None:
    """Shows that a dropped text file appears in the list of folders and in one receipt."""
    await home.serve(stop_at="quick", rest_seconds=1)
    home.drop("hr/leave.pdf", LEAVE)
    notes = home.drop("hr/notes.txt", b"x")
    home.drop("loose.pdf", LEAVE)
    folders = Folders(home.database)

    async def are(strangers: set[str]) -> bool:
        return {name for one in await folders.status() for name in one.unsupported_files} == strangers

    await home.until(lambda: are({"notes.txt"}))
    assert list(await folders.unsupported_files()) == ["loose.pdf"]
    notes.unlink()
    await home.until(lambda: are(set()))
    home.drop("hr/notes.txt", b"y")
    await home.until(lambda: are({"notes.txt"}))
    (told,) = [row for row in await home.rows(NoticeRow) if row.kind == "stranger"]
    (notice,) = [one for one in await recent_notices(home.database, told.channel_id, 5) if not one.pages]
    assert (notice.kind, notice.file, notice.text) == ("failed", "notes.txt", told.text)


async def test_a_restart_stores_and_reads_nothing_again(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """Shows that a restart costs one scan."""
    first = await home.serve()
    home.drop("hr/leave.pdf", LEAVE)
    before = await home.until_found("hr", "marzipan", "leave.pdf", Rung.FULL)
    await first.stop()
    caplog.set_level(logging.INFO)
    await home.serve()
    await asyncio.sleep(2)
    assert (await home.find("hr", "marzipan"))["leave.pdf"] == before
    assert len(await home.rows(ReadingRow)) == 2
    assert not [record for record in caplog.records if "outcome=" in record.message]


def _move_aside(home: Home, what: str) -> list[tuple[Path, Path]]:
    """Move something away; return pairs of original and new path."""
    folder = home.inbox / "hr"
    files = sorted(folder.iterdir())
    gone = {"inbox": [home.inbox], "folder": [folder], "most of its files": files[:2]}
    moved = [(path, home.path / f"aside-{path.name}") for path in gone[what]]
    for path, aside in moved:
        path.rename(aside)
    return moved


async def _count(home: Home, table: type, number: int, **values: object) -> bool:
    rows = await home.rows(table)
    return sum(all(getattr(row, key) == value for key, value in values.items()) for row in rows) == number


async def _are_quarantined(home: Home, *files: str) -> bool:
    documents = await home.documents("hr")
    return all(file in documents and documents[file].state == "quarantined" for file in files)


@pytest.mark.long
async def test_a_refused_file_does_not_revive_a_deleted_document(
    home: Home,
) -> None:
    """Shows that the next plan republishes nothing of the deleted document."""
    ingestion = await home.serve(stop_at="quick", max_file_mb=1)
    path = home.drop("hr/leave.pdf", LEAVE)
    home.drop("hr/travel.pdf", TRAVEL)
    home.drop("hr/other.pdf", LEAVE_2)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await home.until_found("hr", "nougat", "other.pdf")
    path.unlink()
    await home.until(lambda: _count(home, DocumentRow, 1, state="deleted"))
    home.drop("hr/leave.pdf", LEAVE + b"\n" * 1_500_000 + b"%%EOF\n")
    await home.until_row(DocumentRow, lambda row: "1 MB" in (row.reason or ""))
    async with home.database.transaction() as session:
        await plan(session, ingestion.generations)
    await asyncio.sleep(1.5)
    assert "leave.pdf" not in await home.find("hr", "marzipan")


async def test_an_inbox_folder_replaced_by_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    """Shows that write access to the inbox gives no access to files that only the service may read."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "canary.pdf").write_bytes(pdf("Salaries\nThe canary earns nothing."))
    await home.serve(stop_at="quick")
    path = home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    path.parent.rename(tmp_path / "aside")
    (home.inbox / "hr").symlink_to(secret)
    await home.until_row(FolderRow, lambda row: "link" in (row.problem or ""))
    assert set(await home.documents("hr")) == {"leave.pdf"}
    assert len(await home.rows(BlobRow)) == 1
    assert set(await home.find("hr", "marzipan canary")) == {"leave.pdf"}


@pytest.mark.long
async def test_a_folder_with_an_invalid_channel_name_stops_no_other(home: Home) -> None:
    """Covers names that are not UTF-8 or not printable."""
    home.drop("\udcff/bad.pdf", LEAVE)
    home.drop("a\nb/bad.pdf", LEAVE)
    home.drop("hr/leave.pdf", LEAVE)
    await home.serve(stop_at="quick")
    await home.until_found("hr", "marzipan", "leave.pdf")
    home.drop("\udcfe/bad.pdf", LEAVE)
    home.drop("it/leave.pdf", LEAVE)
    await home.until_found("it", "marzipan", "leave.pdf")
    assert {one.name for one in await home.channels.all()} == {"hr", "it"}
    result = await home.ingestion(stop_at="quick").ingest_root(home.inbox, Rung.QUICK, lambda _: None)
    assert result.live == 2
    previewer = Previewer(Folders(home.database), max_bytes=10**8, ask_from_share=0.5)
    assert [one.channel for one in await previewer.root(home.inbox)] == ["hr", "it"]
    with pytest.raises(UnknownChannel):
        await home.channels.by_name("\udcff")
