"""Ingestion progress: counted by the newest version, timed over the last seconds, never nonsense."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from storage.chat.channels import Channels
from storage.clock import utc_now
from storage.documents.progress import Progress, in_folder, measure_progress
from storage.models import ChannelKey, Platform, Rung
from storage.queues.reading_queue import BEGUN_AT, BEGUN_FROM, BEGUN_SHARE, FULL_SECONDS, SHARE
from storage.sql.database import Database
from storage.sql.tables import BlobRow, DocumentRow, FolderRow, PublicationRow, ReadingRow, VersionRow


class Library:
    """A folder of documents in any state."""

    def __init__(self, database: Database, channel_id: int, folder_id: int) -> None:
        self._now = utc_now()
        self._database = database
        self._channel_id = channel_id
        self.folder_id = folder_id

    async def document(self, file: str, **values: object) -> DocumentRow:
        """Return a document without a version."""
        row = DocumentRow(channel_id=self._channel_id, folder_id=self.folder_id, file=file, **values)
        async with self._database.transaction() as session:
            session.add(row)
        return row

    async def version(
        self,
        document: DocumentRow,
        number: int = 1,
        *,
        live: Rung | None = None,
        readings: dict[Rung, str] | None = None,
        size: int = 1000,
        pages: int = 10,
        begun: int = 0,
        begun_seconds_ago: float | None = None,
        took: float | None = None,
        seconds_ago: float = 3600,
    ) -> None:
        """Add a version with readings in these states, one of which may be live."""
        sha256 = uuid4().hex * 2
        done_at = self._now - timedelta(seconds=seconds_ago)
        version = VersionRow(document_id=document.id, number=number, sha256=sha256)
        made = {
            rung: ReadingRow(sha256=sha256, generation=f"g-{rung}", rung=rung, state=state)
            for rung, state in (readings or {}).items()
        }
        for row in made.values():
            row.pages_begun = begun
            if row.state == "done":
                row.pages, row.done_at = pages, done_at
                row.details = None if took is None else {"milliseconds": round(took * 1000)}
            if row.rung == Rung.FULL and begun_seconds_ago is not None:
                begun_at = self._now - timedelta(seconds=begun_seconds_ago)
                row.details = {
                    BEGUN_AT: begun_at.isoformat(),
                    BEGUN_FROM: 0,
                    BEGUN_SHARE: 0.0,
                    SHARE: begun / pages,
                    FULL_SECONDS: float(pages),
                }
                row.lease_owner, row.lease_until = "worker", self._now + timedelta(seconds=60)
        async with self._database.transaction() as session:
            session.add(BlobRow(sha256=sha256, size=size))
            await session.flush()
            session.add_all([version, *made.values()])
            await session.flush()
            if live is not None:
                shown = PublicationRow(
                    channel_id=self._channel_id, version_id=version.id, reading_id=made[live].id, state="live"
                )
                session.add(shown)

    async def read(self, file: str, **values: object) -> None:
        """Add a document that is searchable by words."""
        await self.version(
            await self.document(file), live=Rung.QUICK, readings={Rung.QUICK: "done"}, **values
        )

    async def unread(self, file: str, size: int = 1000) -> None:
        """Add a document that was not opened yet."""
        await self.version(await self.document(file), readings={Rung.QUICK: "waiting"}, size=size)

    async def progress(self, file: str | None = None) -> Progress:
        """Measure at the moment from which all times count, however slow the machine is."""
        async with self._database.snapshot() as session:
            return await measure_progress(session, [in_folder(self.folder_id, file)], now=self._now)


@pytest.fixture
async def library(database: Database) -> Library:
    """An empty folder."""
    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "it"))
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location="/it", watched=True)
        session.add(folder)
    return Library(database, channel.id, folder.id)


async def test_there_is_no_estimate_before_the_first_reading(library: Library) -> None:
    """Shows that "unknown" is not shown as "done", nor as a speed of zero."""
    await library.unread("a.pdf")
    progress = await library.progress()
    assert (progress.quick.pages_per_second, progress.quick.seconds_left) == (None, None)
    assert (progress.waiting, progress.has_reached(Rung.FULL)) == (1, False)


async def test_arriving_files_are_counted_without_an_estimate(library: Library) -> None:
    """Shows that an unopened file keeps ingestion from looking finished."""
    progress = (await library.progress()).with_arriving(2)
    assert (progress.files, progress.waiting, progress.quick.seconds_left) == (2, 2, None)


async def test_the_time_left_of_unread_files_follows_their_size(library: Library) -> None:
    """Shows that unknown page counts are estimated from file sizes."""
    for number in range(20):
        await library.read(f"{number}.pdf", size=850_000, pages=10, took=2, seconds_ago=40 - 2 * number)
    await library.unread("small.pdf", size=100)
    small = (await library.progress()).quick.seconds_left or 0
    await library.unread("large.pdf", size=4_850_000)
    quick = (await library.progress()).quick
    assert quick.pages_per_second == pytest.approx(4.75, rel=0.1)
    assert quick.seconds_left == pytest.approx(small + 10, rel=0.1)


async def test_the_speed_is_measured_over_the_last_seconds(library: Library) -> None:
    """Shows that a file read an hour ago has no effect on the current speed."""
    for number in range(5):
        await library.read(f"{number}.pdf", seconds_ago=3600 + number)
    await library.unread("new.pdf")
    assert (await library.progress()).quick.pages_per_second is None


async def test_two_files_at_the_same_time_yield_no_speed(library: Library) -> None:
    """Shows that a start is not reported as thousands of pages a second."""
    await library.read("a.pdf", seconds_ago=0.02)
    await library.read("b.pdf", seconds_ago=0.01)
    await library.unread("c.pdf")
    assert (await library.progress()).quick.pages_per_second is None


async def test_finished_ingestion_has_no_time_left_and_no_speed(library: Library) -> None:
    for number in range(3):
        await library.read(f"{number}.pdf", seconds_ago=5 - number)
    progress = await library.progress()
    assert (progress.quick.pages_per_second, progress.quick.seconds_left) == (None, 0.0)
    assert (progress.quick.pages_done, progress.pages) == (30, 30)


async def test_a_replaced_file_is_live_and_pending(library: Library) -> None:
    """Shows that a newer version is pending while the old one stays live."""
    document = await library.document("a.pdf")
    await library.version(document, live=Rung.FULL, readings={Rung.QUICK: "done", Rung.FULL: "done"})
    await library.version(document, 2, readings={Rung.QUICK: "waiting"})
    progress = await library.progress()
    assert (progress.files_answering, progress.quick.files_done, progress.waiting) == (1, 0, 1)


async def test_an_unreadable_new_version_counts_as_quarantined(
    library: Library,
) -> None:
    """Shows that a failure is counted once and is not pending, although the old version stays live."""
    document = await library.document("a.pdf")
    await library.version(document, live=Rung.QUICK, readings={Rung.QUICK: "done"})
    await library.version(document, 2, readings={Rung.QUICK: "failed"})
    await library.document("b.pdf", state="quarantined", reason="It is not a PDF.")
    progress = await library.progress()
    assert (progress.files_answering, progress.quarantined, progress.waiting) == (1, 2, 0)
    assert progress.has_reached(Rung.FULL)


async def test_failed_vectors_do_not_block_the_full_rung(library: Library) -> None:
    """Shows that a file whose vectors failed counts as finished."""
    document = await library.document("a.pdf")
    await library.version(document, live=Rung.QUICK, readings={Rung.QUICK: "done", Rung.FULL: "failed"})
    progress = await library.progress()
    assert [one.files_failed for one in progress.rungs] == [0, 1]
    assert progress.has_reached(Rung.FULL)


async def test_a_document_being_reread_counts_as_pending(library: Library) -> None:
    """Shows that a new generation's readings count while the old ones stay live."""
    document = await library.document("a.pdf")
    await library.version(document, live=Rung.FULL, readings={Rung.QUICK: "done", Rung.FULL: "done"})
    assert (await library.progress()).has_reached(Rung.FULL)
    await library.version(document, 2, live=Rung.FULL, readings={Rung.QUICK: "waiting", Rung.FULL: "done"})
    progress = await library.progress()
    assert (progress.files_answering, progress.quick.files_done, progress.rungs[1].files_done) == (
        1,
        0,
        0,
    )


async def test_a_long_reading_reports_its_finished_pages(library: Library) -> None:
    """Shows that a book of thousands of pages makes progress before its last page."""
    readings = {Rung.QUICK: "done", Rung.FULL: "waiting"}
    document = await library.document("book.pdf")
    await library.version(document, live=Rung.QUICK, readings=readings, pages=5000, begun=1200)
    await library.read("leaflet.pdf", pages=4)
    full = (await library.progress()).rungs[1]
    assert (full.files_done, full.pages_done) == (0, 1200)


async def test_finished_pages_never_decrease(
    library: Library,
) -> None:
    """Neither between reading and publication, nor when the rest fails."""
    for file, state in (("done.pdf", "done"), ("failed.pdf", "failed")):
        readings = {Rung.QUICK: "done", Rung.FULL: state}
        await library.version(
            await library.document(file), live=Rung.QUICK, readings=readings, pages=100, begun=70
        )
    full = (await library.progress()).rungs[1]
    assert (full.files_done, full.files_failed, full.pages_done) == (0, 1, 170)


async def test_the_time_left_of_a_long_book_follows_its_own_speed(library: Library) -> None:
    """The remaining pages of all files are estimated at that speed."""
    readings = {Rung.QUICK: "done", Rung.FULL: "waiting"}
    await library.version(
        await library.document("book.pdf"),
        live=Rung.QUICK,
        readings=readings,
        pages=2400,
        begun=1200,
        begun_seconds_ago=400,
    )
    await library.version(await library.document("next.pdf"), live=Rung.QUICK, readings=readings, pages=300)
    full = (await library.progress()).rungs[1]
    assert full.pages_per_second == pytest.approx(3, rel=0.01)
    assert full.seconds_left == pytest.approx(500, rel=0.05)


async def test_the_end_of_a_long_reading_is_no_burst(library: Library) -> None:
    """Shows that pages count over the time of their reading, not at the moment of the last one."""
    done = {Rung.QUICK: "done", Rung.FULL: "done"}
    await library.version(
        await library.document("book.pdf"),
        live=Rung.FULL,
        readings=done,
        pages=1000,
        took=500,
        seconds_ago=1,
    )
    await library.version(
        await library.document("next.pdf"),
        live=Rung.QUICK,
        readings={Rung.QUICK: "done", Rung.FULL: "waiting"},
        pages=40,
    )
    full = (await library.progress()).rungs[1]
    assert full.pages_per_second == pytest.approx(2, rel=0.02)
    assert full.seconds_left == pytest.approx(20, rel=0.05)


async def test_progress_can_be_limited_to_one_file(library: Library) -> None:
    """Shows that the progress of one file excludes its neighbours."""
    await library.read("a.pdf")
    await library.unread("b.pdf")
    assert (await library.progress("a.pdf")).files == 1
    assert (await library.progress()).files == 2
