"""Citations outlive what they were made from, and their ids are never given again."""

from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.citations import Citations
from storage.documents.catalog import Catalog
from storage.documents.document_overview import DocumentOverview
from storage.models import Box, ChannelKey, Platform, Shown
from storage.sql.database import Database
from storage.sql.tables import BlobRow, CitationRow, DocumentRow, FolderRow, SourceOpeningRow, VersionRow

QUOTE = "Backups run daily at 2:00 AM — “full” on Sundays."
BOXES = [Box(0.1, 0.2, 0.9, 0.22), Box(0.1, 0.23, 0.4, 0.25)]


@pytest.fixture
def citations(database: Database) -> Citations:
    """The citations of a fresh database."""
    return Citations(database)


@pytest.fixture
async def version_id(database: Database) -> int:
    """A version of a document in channel 1."""
    channel = await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "it"))
    version = VersionRow(number=1, sha256="ab")
    async with database.transaction() as session:
        folder = FolderRow(channel_id=channel.id, location="/inbox/it", watched=True)
        session.add_all([folder, BlobRow(sha256="ab", size=1)])
        await session.flush()
        document = DocumentRow(channel_id=channel.id, folder_id=folder.id, file="a.pdf")
        session.add(document)
        await session.flush()
        version.document_id = document.id
        session.add(version)
    return version.id


async def test_a_citation_comes_back_as_it_was_shown(citations: Citations, version_id: int) -> None:
    """Quote and boxes survive to the last character and digit."""
    (kept,) = await citations.add(1, [Shown(version_id, 2, QUOTE, BOXES)])
    assert await citations.get(kept.id) == kept
    assert (kept.quote, kept.boxes, kept.page) == (QUOTE, tuple(BOXES), 2)


async def test_what_is_shown_together_comes_back_in_its_order(citations: Citations, version_id: int) -> None:
    """Shows that each record is that of its own place: [2] never opens the page of [3]."""
    kept = await citations.add(1, [Shown(version_id, page, f"word {page}") for page in (7, 2, 9, 4)])
    assert [(one.page, one.quote) for one in kept] == [(page, f"word {page}") for page in (7, 2, 9, 4)]
    assert [await citations.get(one.id) for one in kept] == kept


async def test_quotes_of_one_answer_know_each_other(citations: Citations, version_id: int) -> None:
    """Shows that they come back by number, whichever was opened; a figure and another answer are apart."""
    places = [Shown(version_id, page, f"word {page}", number=n) for n, page in ((1, 7), (2, 2), (3, 9))]
    kept = await citations.add(1, [places[1], places[2], places[0]])
    (figure,) = await citations.add(1, [Shown(version_id, 7, "Figure 1")])
    (other,) = await citations.add(1, [places[0]])
    for one in kept:
        assert await citations.of_answer(one) == [kept[2], kept[0], kept[1]]
    assert await citations.of_answer(figure) == [figure]
    assert await citations.of_answer(other) == [other]
    assert await citations.of_answer(replace(kept[0], channel_id=2)) == []


async def test_an_id_is_never_given_again(citations: Citations, version_id: int, database: Database) -> None:
    """An old link to an erased citation finds nothing, not the next person's citation."""
    (erased,) = await citations.add(1, [Shown(version_id, 1, QUOTE)])
    async with database.transaction() as session:
        await session.execute(delete(CitationRow))
    (following,) = await citations.add(1, [Shown(version_id, 1, QUOTE)])
    assert following.id != erased.id
    assert await citations.get(erased.id) is None


async def test_a_citation_of_nothing_is_refused(citations: Citations, version_id: int) -> None:
    """A citation needs a version and a channel that exist."""
    with pytest.raises(IntegrityError):
        await citations.add(1, [Shown(version_id + 1, 1, QUOTE)])
    with pytest.raises(IntegrityError):
        await citations.add(2, [Shown(version_id, 1, QUOTE)])


async def test_openings_are_added_up_by_day_and_go_with_their_citation(
    citations: Citations, database: Database, version_id: int
) -> None:
    """Shows that one of which nothing is kept counts nothing; the other new queries run on both engines."""
    one, other = await citations.add(1, [Shown(version_id, 2, QUOTE, BOXES), Shown(version_id, 3, QUOTE, [])])
    today, before = date(2026, 3, 2), date(2026, 3, 1)
    await citations.count_openings({(one.id, before): 1, (one.id, today): 2, (99, today): 5})
    await citations.count_openings({(one.id, today): 3, (other.id, today): 1})
    query = select(col(SourceOpeningRow.citation_id), col(SourceOpeningRow.day), col(SourceOpeningRow.count))
    async with database.snapshot() as session:
        kept = {(id_, day): count for id_, day, count in await session.execute(query)}
    assert kept == {(one.id, before): 1, (one.id, today): 5, (other.id, today): 1}
    async with database.transaction() as session:
        await session.execute(delete(CitationRow).where(col(CitationRow.id) == one.id))
    async with database.snapshot() as session:
        assert [row[0] for row in await session.execute(query)] == [other.id]
    overview = DocumentOverview(database, Catalog(database))
    assert (await overview.progress_of("ab", "a.pdf"))["state"] == "waiting"
    assert [(found.status.file, found.live) for found in await overview.of([1])] == [("a.pdf", None)]
    assert await citations.shown_in(other.id) is None
