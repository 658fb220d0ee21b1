"""Moving the inbox: its documents move along, or stay with the process that still watches them."""

from __future__ import annotations

from harness.ingestion_home import Home
from samples.paper import pdf

from storage.sql.tables import BlobRow, DocumentRow, FolderRow

LEAVE = pdf("Leave\nThe marzipan leave has nine days.")
TRAVEL = pdf("Travel\nThe zeppelin is booked in spring.")


async def documents(home: Home) -> set[tuple[str, str]]:
    """Return id and file of each live document."""
    return {(str(row.id), row.file) for row in await home.rows(DocumentRow) if row.state != "deleted"}


async def locations(home: Home) -> set[str]:
    """Return the locations of the home's folders."""
    return {row.location for row in await home.rows(FolderRow)}


async def test_documents_of_a_moved_inbox_keep_their_ids(home: Home) -> None:
    """Shows that a moved home has each document once and continues watching."""
    first = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    before = await documents(home)
    await first.stop()
    elsewhere = home.path / "elsewhere"
    home.inbox.rename(elsewhere)
    await home.ingestion(stop_at="quick").start(elsewhere)
    (elsewhere / "hr" / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("hr", "zeppelin", "travel.pdf")
    assert set(await home.find("hr", "marzipan")) == {"leave.pdf"}
    assert before < await documents(home)
    assert await locations(home) == {str(elsewhere / "hr")}
    assert len(await home.rows(BlobRow)) == 2


async def test_starting_with_another_inbox_deletes_no_document(home: Home) -> None:
    """Shows that a wrong inbox deletes no document, and that the old inbox can be restored."""
    first = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    before = await documents(home)
    await first.stop()
    mistaken = home.ingestion(stop_at="quick")
    await mistaken.start(home.path / "mistake")

    async def has_problem() -> bool:
        return all(row.problem for row in await home.rows(FolderRow))

    await home.until(has_problem)
    assert set(await home.find("hr", "marzipan")) == {"leave.pdf"}
    await mistaken.stop()
    await home.serve(stop_at="quick")

    async def is_well() -> bool:
        return not await has_problem()

    await home.until(is_well)
    assert await documents(home) == before


async def test_a_running_process_keeps_its_inbox(home: Home) -> None:
    """Shows that a second process with another inbox takes no folder over."""
    await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    other = home.path / "other"
    await home.ingestion(stop_at="quick").start(other)
    (other / "travel").mkdir(parents=True)
    (other / "travel" / "rules.pdf").write_bytes(TRAVEL)
    await home.until_found("travel", "zeppelin", "rules.pdf")
    assert await locations(home) == {str(home.inbox / "hr"), str(other / "travel")}


async def test_a_folder_in_both_inboxes_is_reported(home: Home) -> None:
    """Shows that they are not merged: the old folder reports what to do."""
    first = await home.serve(stop_at="quick")
    home.drop("hr/leave.pdf", LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    await first.stop()
    other = home.path / "other"
    (other / "hr").mkdir(parents=True)
    (other / "hr" / "travel.pdf").write_bytes(TRAVEL)
    await home.ingest(other / "hr", "hr", stop_at="quick")
    await home.ingestion(stop_at="quick").start(other)
    problems = {row.location: row.problem for row in await home.rows(FolderRow)}
    assert "FOOTNOTE_INBOX" in (problems[str(home.inbox / "hr")] or "")
