"""Citations outlive the questions they came from; their ids are never reused."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from harness.clocks import shift_wall_clock
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import col

from storage.chat.channels import Channels
from storage.chat.citations import Citations, ShownIn
from storage.documents.catalog import Catalog
from storage.documents.document_overview import DocumentOverview
from storage.models import Box, ChannelKey, CitedPlace, Platform
from storage.sql.audit import AuditedAction
from storage.sql.database import Database
from storage.sql.tables import (
    AnswerSourceRow,
    BlobRow,
    CitationRow,
    DocumentRow,
    FolderRow,
    InboxRow,
    OutboxRow,
    SourceOpeningRow,
    VersionRow,
)

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


async def posted(
    database: Database, ts: str, version: int, *quotes: str, channel: int = 1, box: Box | None = None
) -> ShownIn:
    """Post an answer that cites these quotes of page 2, numbered from 1, and a figure; return its message."""
    cited = [
        {"number": number, "version_id": version, "file": "a.pdf", "page": 2, "quote": quote}
        for number, quote in enumerate(quotes, 1)
    ]
    figures = [{"file": "a.pdf", "page": 2, "box": list(box), "caption": "What a model says"}] if box else []
    async with database.transaction() as session:
        asked = InboxRow(
            platform="slack", event_key=ts, message_key=ts, channel_id=channel, address={"channel": "C"},
            thread="", text="When?",
        )  # fmt: skip
        session.add(asked)
        await session.flush()
        answer = {"citations": cited, "figures": figures}
        session.add(OutboxRow(inbox_id=asked.id, state="delivered", message={"ts": ts}, answer=answer))
        session.add(AnswerSourceRow(inbox_id=asked.id, version_id=version))
    return ShownIn({"channel": "C"}, {"ts": ts})


async def next_version(database: Database, version_id: int) -> int:
    """Add the next version of the same document."""
    async with database.transaction() as session:
        before = await session.get_one(VersionRow, version_id)
        newer = VersionRow(document_id=before.document_id, number=before.number + 1, sha256="ab")
        session.add(newer)
        await session.flush()
        return newer.id


async def test_a_citation_round_trips(citations: Citations, version_id: int) -> None:
    """Quote and boxes survive to the last character and digit."""
    (kept,) = await citations.add(1, [CitedPlace(version_id, 2, QUOTE, BOXES)])
    assert await citations.get(kept.id) == kept
    assert (kept.quote, kept.boxes, kept.page) == (QUOTE, tuple(BOXES), 2)


async def test_citations_of_one_answer_keep_their_order(citations: Citations, version_id: int) -> None:
    """Shows that citation [2] never opens the page of [3]."""
    kept = await citations.add(1, [CitedPlace(version_id, page, f"word {page}") for page in (7, 2, 9, 4)])
    assert [(one.page, one.quote) for one in kept] == [(page, f"word {page}") for page in (7, 2, 9, 4)]
    assert [await citations.get(one.id) for one in kept] == kept


async def test_a_citation_finds_the_other_quotes_of_its_answer(citations: Citations, version_id: int) -> None:
    """They are returned by number, whichever was opened; figures and other answers are excluded."""
    places = [CitedPlace(version_id, page, f"word {page}", number=n) for n, page in ((1, 7), (2, 2), (3, 9))]
    kept = await citations.add(1, [places[1], places[2], places[0]])
    (figure,) = await citations.add(1, [CitedPlace(version_id, 7, "Figure 1")])
    (other,) = await citations.add(1, [places[0]])
    for one in kept:
        assert await citations.of_answer(one) == [kept[2], kept[0], kept[1]]
    assert await citations.of_answer(figure) == [figure]
    assert await citations.of_answer(other) == [other]
    assert await citations.of_answer(replace(kept[0], channel_id=2)) == []


async def test_a_citation_id_is_never_reused(
    citations: Citations, version_id: int, database: Database
) -> None:
    """An old link to an erased citation finds nothing rather than another citation."""
    (erased,) = await citations.add(1, [CitedPlace(version_id, 1, QUOTE)])
    async with database.transaction() as session:
        await session.execute(delete(CitationRow))
    (following,) = await citations.add(1, [CitedPlace(version_id, 1, QUOTE)])
    assert following.id != erased.id
    assert await citations.get(erased.id) is None


async def test_a_citation_needs_an_existing_version_and_channel(
    citations: Citations, version_id: int
) -> None:
    with pytest.raises(IntegrityError):
        await citations.add(1, [CitedPlace(version_id + 1, 1, QUOTE)])
    with pytest.raises(IntegrityError):
        await citations.add(2, [CitedPlace(version_id, 1, QUOTE)])


async def test_link_openings_are_counted_per_day_and_citation(
    citations: Citations, database: Database, version_id: int
) -> None:
    """Opening an unknown citation counts nothing; the other queries run on both engines, too."""
    one, other = await citations.add(
        1, [CitedPlace(version_id, 2, QUOTE, BOXES), CitedPlace(version_id, 3, QUOTE, [])]
    )
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


async def test_a_recited_source_leads_to_the_answer_that_showed_it(
    citations: Citations, database: Database, version_id: int
) -> None:
    """Matched by its quote, or by its number without one, however long after and two versions later."""
    first = await posted(database, "1", version_id, "other words", "more", "and more")
    last = await posted(database, "2", version_id, QUOTE, "gone")
    newest = await next_version(database, await next_version(database, version_id))
    with shift_wall_clock(timedelta(days=3)):
        moved = await citations.add(
            1, [CitedPlace(newest, 3, QUOTE, (), 1), CitedPlace(newest, 1, "", (), 2)]
        )
        (by_number,) = await citations.add(1, [CitedPlace(newest, 1, "", (), 3)])
    assert [await citations.shown_in(one.id) for one in moved] == [last, last]
    assert await citations.shown_in(by_number.id) == first
    again = await posted(database, "3", version_id, QUOTE, "gone")
    assert await citations.shown_in(moved[0].id) == again


async def test_a_recited_source_never_leads_to_an_unrelated_answer(
    citations: Citations, database: Database, version_id: int
) -> None:
    """Not to one of another channel, version or quote, to several by number alone, or to a later one."""
    await Channels(database).ensure(ChannelKey(Platform.LOCAL, "", "hr"))
    newer = await next_version(database, version_id)
    words, bare = [
        (await citations.add(1, [CitedPlace(newer, 1, quote, (), 1)]))[0].id for quote in (QUOTE, "")
    ]
    await posted(database, "1", version_id, QUOTE, channel=2)
    await posted(database, "2", await next_version(database, newer), QUOTE)
    with shift_wall_clock(timedelta(hours=2)):
        await posted(database, "3", version_id, QUOTE)
    assert (await citations.shown_in(words), await citations.shown_in(bare)) == (None, None)
    one = await posted(database, "4", version_id, "other words")
    assert (await citations.shown_in(words), await citations.shown_in(bare)) == (None, one)
    await posted(database, "5", version_id, "still others")
    assert await citations.shown_in(bare) is None


async def test_a_figure_leads_to_the_answer_that_showed_it(
    citations: Citations, database: Database, version_id: int
) -> None:
    """Matched by its box on the page, whatever its caption; a page without a box matches no answer."""
    shown = await posted(database, "1", version_id, QUOTE, box=BOXES[0])
    places = [CitedPlace(version_id, 2, "Figure 1", boxes) for boxes in (BOXES[:1], BOXES[1:], ())]
    figure, other, page = await citations.add(1, places)
    assert await citations.shown_in(figure.id) == shown
    assert (await citations.shown_in(other.id), await citations.shown_in(page.id)) == (None, None)


async def test_revoking_a_citation_revokes_those_derived_from_it(
    citations: Citations, version_id: int
) -> None:
    """In a chain of three, revoking the second revokes the third and leaves the first."""
    first, *_ = await citations.add(1, [CitedPlace(version_id, 1, "a", number=1)])
    second, *_ = await citations.add(1, [replace(first.shown, quote="b")])
    third, *_ = await citations.add(1, [replace(second.shown, quote="c")])
    action = AuditedAction("local", "revoke links", "", "")
    assert await citations.revoke([second.id], action) == 2
    kept = [await citations.get(one.id) for one in (first, second, third)]
    assert [one and one.revoked_at is None for one in kept] == [True, False, False]
    (fourth,) = await citations.add(1, [third.shown])
    assert fourth.revoked_at is not None
