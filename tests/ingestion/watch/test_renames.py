"""Document identity across renames, swaps and moves, as opposed to copies and replacements."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest
from harness.ingestion_home import Home
from samples.paper import pdf

from storage.models import LivePublication
from storage.sql.tables import DocumentRow, ReadingRow

RED = pdf("Red\nThe red rule is about marzipan.")
BLUE = pdf("Blue\nThe blue rule is about zeppelins.")
GREEN = pdf("Green\nThe green rule is about ducats.")


async def watched(home: Home, **files: bytes) -> dict[str, LivePublication]:
    """Return the live publication of each of these files in a served folder ``hr``."""
    await home.serve(stop_at="quick")
    for name, data in files.items():
        home.drop(f"hr/{name}.pdf", data)
    return {name: await home.until_found("hr", "rule", f"{name}.pdf") for name in files}


async def until_documents(home: Home, channel: str, expected: dict[str, UUID]) -> None:
    """Wait until exactly these documents are live under these names."""

    async def is_so() -> bool:
        found = await home.find(channel, "rule")
        return {file: one.document_id for file, one in found.items()} == expected

    await home.until(is_so)


async def test_two_files_that_swap_names_keep_their_documents(home: Home) -> None:
    """Shows that contents and inodes decide, not names alone."""
    before = await watched(home, a=RED, b=BLUE)
    folder = home.inbox / "hr"
    (folder / "a.pdf").rename(folder / "aside")
    (folder / "b.pdf").rename(folder / "a.pdf")
    (folder / "aside").rename(folder / "b.pdf")
    await until_documents(home, "hr", {"b.pdf": before["a"].document_id, "a.pdf": before["b"].document_id})
    assert len(await home.rows(ReadingRow)) == 2
    assert {one.version_id for one in (await home.find("hr", "rule")).values()} == {
        one.version_id for one in before.values()
    }


async def test_a_renamed_file_keeps_its_document_if_its_name_is_reused(home: Home) -> None:
    """Shows that the new file under the old name is another document."""
    before = await watched(home, a=RED, other=GREEN)
    folder = home.inbox / "hr"
    (folder / "a.pdf").rename(folder / "b.pdf")
    home.drop("hr/a.pdf", BLUE)
    await home.until_found("hr", "zeppelins", "a.pdf")
    found = await home.find("hr", "rule")
    assert found["b.pdf"].document_id == before["a"].document_id
    assert found["a.pdf"].document_id not in {one.document_id for one in before.values()}


async def test_an_edited_copy_is_no_rename(home: Home) -> None:
    """Shows that a name keeps its document when its old bytes exist elsewhere, too."""
    before = await watched(home, a=RED)
    folder = home.inbox / "hr"
    shutil.copy(folder / "a.pdf", folder / "copy.pdf")
    (folder / "a.pdf").write_bytes(BLUE)
    after = await home.until_found("hr", "zeppelins", "a.pdf")
    copy = await home.until_found("hr", "marzipan", "copy.pdf")
    assert after.document_id == before["a"].document_id != copy.document_id


@pytest.mark.long
async def test_a_chain_of_renames_while_stopped_keeps_every_document(home: Home) -> None:
    """a to b, b to c, c to d."""
    before = await watched(home, a=RED, b=BLUE, c=GREEN)
    await home.ingestions[0].stop()
    folder = home.inbox / "hr"
    for old, new in (("c", "d"), ("b", "c"), ("a", "b")):
        (folder / f"{old}.pdf").rename(folder / f"{new}.pdf")
    await home.serve(stop_at="quick")
    moved = {new: before[old].document_id for old, new in (("a", "b"), ("b", "c"), ("c", "d"))}
    await until_documents(home, "hr", {f"{new}.pdf": document for new, document in moved.items()})
    assert len(await home.rows(ReadingRow)) == 3


async def test_a_rename_of_letter_case_alone_keeps_the_document(home: Home) -> None:
    before = await watched(home, a=RED)
    (home.inbox / "hr" / "a.pdf").rename(home.inbox / "hr" / "A.pdf")
    await until_documents(home, "hr", {"A.pdf": before["a"].document_id})


async def test_a_renamed_folder_keeps_all_its_documents(home: Home) -> None:
    """Shows that many files moved together are matched, even those of one size."""
    await home.serve(stop_at="quick")
    for number in range(12):
        home.drop(f"hr/old/{number:02}.pdf", pdf(f"Rule\nThe rule has number {number:02}."))
    await home.until_files("hr", "rule", {f"old/{number:02}.pdf" for number in range(12)})
    before = {file: one.document_id for file, one in (await home.find("hr", "rule")).items()}
    (home.inbox / "hr" / "old").rename(home.inbox / "hr" / "new")
    expected = {file.replace("old/", "new/"): document for file, document in before.items()}
    await until_documents(home, "hr", expected)
    assert len(await home.rows(DocumentRow)) == 12


@pytest.mark.long
async def test_a_rename_onto_a_deleted_name_keeps_the_deleted_document(home: Home) -> None:
    """Shows that the deleted document is not taken over and can still be restored."""
    before = await watched(home, a=RED, b=BLUE, other=GREEN)
    folder = home.inbox / "hr"
    (folder / "a.pdf").unlink()
    await home.until_row(DocumentRow, lambda row: row.state == "deleted")
    (folder / "b.pdf").rename(folder / "a.pdf")
    expected = {"a.pdf": before["b"].document_id, "other.pdf": before["other"].document_id}
    await until_documents(home, "hr", expected)
    home.drop("hr/red.pdf", RED)
    await until_documents(home, "hr", {**expected, "red.pdf": before["a"].document_id})


async def test_a_new_file_with_a_deleted_name_is_another_document(home: Home) -> None:
    """Shows that links to a deleted document stay invalid, whatever takes its name."""
    before = await watched(home, a=RED, other=GREEN)
    (home.inbox / "hr" / "a.pdf").unlink()
    await home.until_files("hr", "rule", {"other.pdf"})
    home.drop("hr/a.pdf", BLUE)
    assert (await home.until_found("hr", "zeppelins", "a.pdf")).document_id != before["a"].document_id


async def test_a_move_within_a_channel_keeps_the_document(home: Home, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    entries = [f'[[folder]]\nlocation = "{tmp_path / name}"\nchannel = "hr"\n' for name in ("one", "two")]
    home.path.mkdir(exist_ok=True)
    (home.path / "folders.toml").write_text("".join(entries))
    (tmp_path / "one" / "a.pdf").write_bytes(RED)
    (tmp_path / "one" / "b.pdf").write_bytes(GREEN)
    serving = home.ingestion(stop_at="quick")
    await serving.start(home.inbox, home.path / "folders.toml")
    before = await home.until_found("hr", "marzipan", "a.pdf")
    other = await home.until_found("hr", "ducats", "b.pdf")
    (tmp_path / "one" / "a.pdf").rename(tmp_path / "two" / "moved.pdf")
    await until_documents(home, "hr", {"moved.pdf": before.document_id, "b.pdf": other.document_id})
    assert len(await home.rows(ReadingRow)) == 2


async def test_a_move_to_another_channel_makes_a_new_document(
    home: Home,
) -> None:
    """Shows that no link crosses channels, and that the content is not read again."""
    before = await watched(home, a=RED, other=GREEN)
    (home.inbox / "lab").mkdir()
    (home.inbox / "hr" / "a.pdf").rename(home.inbox / "lab" / "a.pdf")
    after = await home.until_found("lab", "marzipan", "a.pdf")
    await until_documents(home, "hr", {"other.pdf": before["other"].document_id})
    assert after.document_id != before["a"].document_id
    assert after.reading_id == before["a"].reading_id
