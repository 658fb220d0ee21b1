"""The catalog lists what is live, in progress and unreadable."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID, uuid4

from fakes.document_shelf import Shelf
from harness.clocks import shift_wall_clock

from storage.clock import utc_now
from storage.documents.catalog import Catalog
from storage.documents.corrections import Corrections
from storage.models import DocumentStatus, Rung
from storage.sql.audit import AuditedAction
from storage.sql.database import Database
from storage.sql.tables import FolderRow, PublicationRow, ReadingRow, VersionRow


async def only_status(catalog: Catalog, shelf: Shelf) -> DocumentStatus:
    (status,) = await catalog.documents(shelf.channel_id)
    return status


async def test_a_live_publication_has_all_that_an_answer_needs(catalog: Catalog, shelf: Shelf) -> None:
    """Document, version, reading, rung, file and title come from one query."""
    document, publication = await shelf.live("sops/SOP-IT-04.pdf")
    live = (await catalog.live(shelf.channel_id, [publication.id, uuid4()]))[publication.id]
    assert (live.document_id, live.version_id, live.reading_id) == (
        document.id,
        publication.version_id,
        publication.reading_id,
    )
    assert (live.file, live.title, live.rung, live.pages, live.chunks) == (
        "sops/SOP-IT-04.pdf",
        "The Title",
        Rung.QUICK,
        7,
        9,
    )
    assert await catalog.live_document(shelf.channel_id, document.id) == live
    assert await catalog.live_document(shelf.channel_id, uuid4()) is None


async def test_a_flip_shows_either_the_old_or_the_new_publication(
    catalog: Catalog, shelf: Shelf, database: Database
) -> None:
    """Before the flip the pending one is hidden, then the retired one; removed ones are never listed."""
    document, old = await shelf.live("a.pdf")
    version = await shelf.version(document, 2)
    new = await shelf.publication(version, await shelf.reading(version), "pending")
    both = {old.id, new.id}

    async def seen() -> tuple[set[UUID], set[UUID]]:
        live = await catalog.live(shelf.channel_id, both)
        return set(live), set(await catalog.hidden(shelf.channel_id))

    assert await seen() == ({old.id}, {new.id})
    async with database.transaction() as session:
        session.add(await session.merge(PublicationRow(**{**old.model_dump(), "state": "retired"})))
        session.add(await session.merge(PublicationRow(**{**new.model_dump(), "state": "live"})))
    assert await seen() == ({new.id}, {old.id})
    await shelf.set(old, state="removed")
    assert await seen() == ({new.id}, set())


async def test_a_soft_deleted_document_is_hidden_at_once(catalog: Catalog, shelf: Shelf) -> None:
    """A soft-deleted document's publication is hidden before anything is cleaned up."""
    document, publication = await shelf.live("a.pdf")
    assert await catalog.has_live(shelf.channel_id)
    await shelf.set(document, state="deleted")
    assert await catalog.live(shelf.channel_id, [publication.id]) == {}
    assert await catalog.hidden(shelf.channel_id) == {publication.id}
    assert not await catalog.has_live(shelf.channel_id)
    assert (await only_status(catalog, shelf)).state == "deleted"
    assert await catalog.active_documents(shelf.channel_id) == []
    await shelf.live("b.pdf")
    assert [status.file for status in await catalog.active_documents(shelf.channel_id)] == ["b.pdf"]


async def test_channels_are_isolated_from_each_other(
    catalog: Catalog, shelf_of: Callable[[str], Awaitable[Shelf]]
) -> None:
    """Another channel's publication is not found even by its id, nor in any list."""
    ours, theirs = await shelf_of("ours"), await shelf_of("theirs")
    _, our_publication = await ours.live("ours.pdf")
    _, their_publication = await theirs.live("theirs.pdf")
    ids = [our_publication.id, their_publication.id]
    assert set(await catalog.live(ours.channel_id, ids)) == {our_publication.id}
    assert [status.file for status in await catalog.documents(ours.channel_id)] == ["ours.pdf"]
    await theirs.set(their_publication, state="retired")
    assert await catalog.hidden(ours.channel_id) == frozenset()
    assert await catalog.has_live(ours.channel_id)
    assert not await catalog.has_live(theirs.channel_id)
    assert (await catalog.progress(ours.channel_id)).files == 1
    assert (await catalog.progress()).files == 2


async def test_a_document_goes_from_waiting_to_live(catalog: Catalog, shelf: Shelf) -> None:
    """Waiting; reading while leased and until it is published; live at quick; live at full."""
    document = await shelf.document("a.pdf")
    assert ((await only_status(catalog, shelf)).state, document.id) == ("waiting", document.id)
    version = await shelf.version(document)
    reading = await shelf.reading(version, state="waiting", title="", pages=0)
    waiting = await only_status(catalog, shelf)
    assert (waiting.state, waiting.rung, waiting.version) == ("waiting", None, version.sha256)
    assert waiting.title == "a.pdf"
    await shelf.set(reading, lease_until=utc_now() + timedelta(seconds=30))
    assert (await only_status(catalog, shelf)).state == "reading"
    await shelf.set(reading, lease_until=None, state="done", title="Handbook", pages=3)
    made = await only_status(catalog, shelf)
    assert (made.state, made.title, made.pages, made.rung) == ("reading", "Handbook", 3, None)
    publication = await shelf.publication(version, reading)
    live = await only_status(catalog, shelf)
    assert (live.state, live.rung, live.reason) == ("live", Rung.QUICK, None)
    await shelf.set(publication, state="retired")
    await shelf.publication(version, await shelf.reading(version, Rung.FULL))
    assert (await only_status(catalog, shelf)).rung is Rung.FULL


async def test_an_expired_lease_is_waiting_again(catalog: Catalog, shelf: Shelf) -> None:
    """A dead worker's document is not shown as being read."""
    version = await shelf.version(await shelf.document("a.pdf"))
    await shelf.reading(version, state="waiting", lease_until=utc_now() + timedelta(seconds=30))
    assert (await only_status(catalog, shelf)).state == "reading"
    with shift_wall_clock(timedelta(seconds=31)):
        assert (await only_status(catalog, shelf)).state == "waiting"


async def test_a_waiting_document_shows_its_reason(catalog: Catalog, shelf: Shelf) -> None:
    """The reason of a postponed reading or publication is shown."""
    version = await shelf.version(await shelf.document("a.pdf"))
    reading = await shelf.reading(version, state="waiting", reason="the disk is full")
    assert (await only_status(catalog, shelf)).reason == "the disk is full"
    await shelf.set(reading, state="done", reason=None)
    publication = await shelf.publication(version, reading, "pending")
    await shelf.set(publication, reason="the index is down")
    status = await only_status(catalog, shelf)
    assert (status.state, status.reason) == ("reading", "the index is down")


async def test_an_unreadable_document_is_quarantined_with_its_reason(catalog: Catalog, shelf: Shelf) -> None:
    """Both if its bytes could not be stored and if its reading failed for good."""
    await shelf.document("large.pdf", state="quarantined", reason="larger than 200 MB")
    version = await shelf.version(await shelf.document("locked.pdf"))
    await shelf.reading(version, state="failed", reason="needs a password", title="")
    statuses = await catalog.documents(shelf.channel_id)
    assert [(status.file, status.state, status.reason, status.rung) for status in statuses] == [
        ("large.pdf", "quarantined", "larger than 200 MB", None),
        ("locked.pdf", "quarantined", "needs a password", None),
    ]
    assert statuses[0].version == ""


async def test_an_old_version_stays_live_while_a_newer_one_is_read(catalog: Catalog, shelf: Shelf) -> None:
    """State and version are the live one's; the reason mentions the newer one, and its failure."""
    document, publication = await shelf.live("a.pdf")
    newer = await shelf.version(document, 2)
    reading = await shelf.reading(newer, state="waiting")
    status = await only_status(catalog, shelf)
    assert (status.state, status.rung, status.reason) == (
        "live",
        Rung.QUICK,
        "a newer version is being processed",
    )
    assert status.version != newer.sha256
    await shelf.set(reading, state="failed", reason="needs a password")
    status = await only_status(catalog, shelf)
    assert (status.state, status.reason) == (
        "live",
        "a newer version could not be read: needs a password",
    )
    assert list(await catalog.live(shelf.channel_id, [publication.id])) == [publication.id]


async def test_a_live_document_has_its_version_number_and_arrival(catalog: Catalog, shelf: Shelf) -> None:
    """Both are those of the live version; a document in progress has neither."""
    document = await shelf.document("a.pdf")
    first = await shelf.version(document)
    waiting = await only_status(catalog, shelf)
    assert (waiting.number, waiting.arrived_at) == (0, None)
    await shelf.publication(first, await shelf.reading(first), "retired")
    with shift_wall_clock(timedelta(days=1)):
        second = await shelf.version(document, 2)
    await shelf.publication(second, await shelf.reading(second))
    await shelf.version(document, 3)
    status = await only_status(catalog, shelf)
    assert (status.number, status.arrived_at) == (2, second.created_at)


async def test_a_failed_full_reading_leaves_the_quick_one_live(catalog: Catalog, shelf: Shelf) -> None:
    """A document searchable by words is not quarantined when its vectors failed."""
    document, publication = await shelf.live("a.pdf")
    version = VersionRow(id=publication.version_id, document_id=document.id, number=1, sha256="")
    version.sha256 = (await only_status(catalog, shelf)).version
    await shelf.reading(version, Rung.FULL, state="failed", reason="no vectors")
    status = await only_status(catalog, shelf)
    assert (status.state, status.rung, status.reason) == ("live", Rung.QUICK, "no vectors")


async def test_progress_counts_visible_files(catalog: Catalog, shelf: Shelf) -> None:
    """Files and pages per rung, quarantined ones apart, no deleted ones; an empty channel is all zero."""
    nothing = await catalog.progress(shelf.channel_id)
    assert (nothing.files, nothing.waiting, nothing.quick.seconds_left) == (0, 0, 0.0)
    await shelf.live("quick.pdf")
    await shelf.live("full.pdf", Rung.FULL)
    await shelf.document("waiting.pdf")
    await shelf.document("bad.pdf", state="quarantined", reason="not a PDF")
    deleted, _ = await shelf.live("deleted.pdf")
    await shelf.set(deleted, state="deleted")
    progress = await catalog.progress(shelf.channel_id)
    assert (progress.files, progress.files_answering, progress.quarantined, progress.pages) == (4, 2, 1, 14)
    assert [(one.files_done, one.files_failed, one.pages_done) for one in progress.rungs] == [
        (2, 1, 14),
        (1, 1, 7),
    ]
    assert progress.waiting == 1


async def test_a_live_document_reports_its_unreadable_parts(catalog: Catalog, shelf: Shelf) -> None:
    """Pages without text, unread pages, struck words and a repaired file are reported."""
    document = await shelf.document("a.pdf")
    version = await shelf.version(document)
    details = {
        "pages_without_text": [1, 3, 4, 5, 9],
        "unread_pages": [9],
        "ocr_pages": [10],
        "struck_words": 12,
        "is_repaired": True,
    }
    await shelf.reading(version, details={"pages_without_text": [1, 3, 4, 5, 9, 10], "pages_for_ocr": [10]})
    await shelf.publication(version, await shelf.reading(version, Rung.FULL, details=details))
    status = await only_status(catalog, shelf)
    assert status.state == "live"
    told = (status.reason or "").split("; ")
    assert [re.findall(r"[\d, -]*\d", one) for one in told] == [[" 10"], [" 9"], [" 1, 3-5"], ["12"], []]
    assert ("OCR" in told[0], "no text" in told[2], "damaged" in told[4]) == (True, True, True)
    assert told[3] == "12 struck-through words were skipped"


async def test_a_document_shows_the_problem_of_its_folder(
    catalog: Catalog, shelf: Shelf, database: Database
) -> None:
    """An outage applies to all documents of a folder, a deletion to confirm only to its files."""
    vanished, _ = await shelf.live("a.pdf")
    await shelf.live("b.pdf")
    async with database.transaction() as session:
        folder = await session.get_one(FolderRow, vanished.folder_id)
        folder.problem, folder.asked = "1 of 2 files vanished.", [str(vanished.id)]
    first, second = await catalog.documents(shelf.channel_id)
    assert first.reason is not None
    assert "footnote folders approve" in first.reason
    assert second.reason is None
    async with database.transaction() as session:
        folder = await session.get_one(FolderRow, vanished.folder_id)
        folder.problem, folder.asked = "The folder is missing.", None
    reasons = {one.reason for one in await catalog.documents(shelf.channel_id)}
    assert reasons == {"its folder has a problem: The folder is missing."}


async def test_a_document_being_reread_says_so(catalog: Catalog, shelf: Shelf) -> None:
    """A new generation is visible while the old reading stays live."""
    document, publication = await shelf.live("a.pdf", Rung.FULL)
    sha256 = (await only_status(catalog, shelf)).version
    version = VersionRow(id=publication.version_id, document_id=document.id, number=1, sha256=sha256)
    await shelf.add(ReadingRow(sha256=version.sha256, generation="2", rung="quick", state="waiting"))
    status = await only_status(catalog, shelf)
    assert (status.state, status.rung) == ("live", Rung.FULL)
    assert "re-read" in (status.reason or "")


async def test_a_source_has_its_best_reading_and_newer_version(catalog: Catalog, shelf: Shelf) -> None:
    """A link's version yields its file, its best reading, and whether a newer version is live."""
    document, old = await shelf.live("a.pdf")
    assert await catalog.version_source(9_999) is None
    source = await catalog.version_source(old.version_id)
    assert source is not None
    assert (source.number, source.newest_number, source.is_deleted) == (1, 1, False)
    assert source.reading_id == old.reading_id
    newer = await shelf.version(document, 2)
    unread = await catalog.version_source(newer.id)
    assert unread is not None
    assert (unread.reading_id, unread.title, unread.newest_number) == (None, "a.pdf", 1)
    await shelf.publication(newer, await shelf.reading(newer))
    await shelf.set(old, state="retired")
    await shelf.set(document, state="deleted")
    source = await catalog.version_source(old.version_id)
    assert source is not None
    assert (source.number, source.newest_number, source.is_deleted) == (1, 2, True)
    assert (source.channel_id, source.file, source.pages) == (shelf.channel_id, "a.pdf", 7)


async def test_documents_with_a_name_are_found_by_title_and_file(
    catalog: Catalog, shelf: Shelf, database: Database
) -> None:
    """Live documents match by title, by printed or admin title, or by file name anywhere.

    Similar names and an empty name match none.
    """

    async def put(file: str, title: str, printed: str = "") -> int:
        version = await shelf.version(await shelf.document(file))
        details = {"metadata": {"title": [printed, 1, [], None]}} if printed else {}
        return (
            await shelf.publication(version, await shelf.reading(version, title=title, details=details))
        ).version_id

    titled = await put("a.pdf", "Übersicht 100%")
    printed = await put("b.pdf", "Template", "Übersicht 100%")
    filed = await put("x/y_z.pdf", "")
    corrected = await put("c.pdf", "Scan")
    await Corrections(database).correct(
        shelf.channel_id, "c.pdf", {"title": "Übersicht 100%"}, AuditedAction("local", "correct", "")
    )
    await put("yaz.pdf", "Übersicht 1000", "Template")
    found = await catalog.live_by_name(shelf.channel_id, {"Übersicht 100%"}, {"y_z.pdf"})
    assert {one.version_id for one in found} == {titled, printed, filed, corrected}
    assert await catalog.live_by_name(shelf.channel_id + 1, {"Übersicht 100%"}, set()) == []
    (one,) = await catalog.live_versions(shelf.channel_id, [printed, 9_999])
    assert one.metadata["title"].value == "Übersicht 100%"
