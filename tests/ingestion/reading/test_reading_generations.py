"""A new parser, chunker or embedder: every content is read again while the old reading stays live."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import UUID

import pytest
from fakes.term_embedder import TermEmbedder
from harness.ingestion_home import Home
from samples.paper import pdf
from sqlalchemy import select, update
from sqlmodel import col

from ingestion.app import Ingestion
from storage.errors import ReaderKilled
from storage.index.base import SearchFilter
from storage.index.live_index import LiveIndex
from storage.models import Rung
from storage.queues.planner import Generations, plan, set_current_generations
from storage.queues.reading_queue import ReadingQueue
from storage.sql.leased_queue import LeasedQueue
from storage.sql.tables import PublicationRow, ReadingRow
from storage.text.analyzer import analyze

FILES = {
    f"leave-{number}.pdf": pdf(
        *(f"Leave {number}.{page}\nThe marzipan leave {number}.{page} has {page} days." for page in range(4))
    )
    for number in range(3)
}
# One page each: laying out a page takes a second of CPU.
SHORT_FILES = {name: pdf(f"Leave\nThe marzipan leave of {name} has 4 days.") for name in FILES}


@pytest.fixture
def first(home: Home) -> TermEmbedder:
    """The embedder that the home starts with."""
    home.embedder = TermEmbedder("first_embedder")
    return home.embedder


async def answering(home: Home) -> list[ReadingRow]:
    """Return the live readings."""
    query = (
        select(ReadingRow)
        .join(PublicationRow, col(PublicationRow.reading_id) == ReadingRow.id)
        .where(col(PublicationRow.state) == "live")
    )
    async with home.database.snapshot() as session:
        return list(await session.scalars(query))


async def found(home: Home) -> set[str]:
    """Return the files found by words, under the live-only rule."""
    where, live = await home.channel("hr"), LiveIndex(home.index, home.catalog, home.embedder.space)
    result = await live.search(where, analyze("marzipan"), None, limit=200)
    return {one.file for one in result.publications.values()}


async def until_read(home: Home, serving: Ingestion, rung: Rung = Rung.FULL) -> None:
    """Wait until everything is live in the ingestion's generation; all files must be found all the time."""
    wanted = serving.generations.for_rung(rung)

    async def is_read() -> bool:
        assert await found(home) == set(FILES)
        return all(row.generation == wanted for row in await answering(home))

    await home.until(is_read)


async def begin(home: Home, files: dict[str, bytes] = FILES, **settings: object) -> None:
    """Serve the files until all of them are live at the full rung, then stop."""
    for name, data in files.items():
        home.drop(f"hr/{name}", data)
    serving = await home.serve(**settings)
    for name in FILES:
        await home.until_found("hr", "marzipan", name, Rung.FULL)
    await serving.stop()


async def search_vectors(home: Home, embedder: TermEmbedder) -> set[UUID]:
    """Return the publications found by vector, without hidden ones."""
    where = await home.channel("hr")
    (vector,) = await embedder.aembed(["marzipan leave"])
    hidden = SearchFilter(hidden=await home.catalog.hidden(where.id))
    hits = await home.index.search_vectors(where.tenant, embedder.space, vector.tolist(), hidden, 100)
    return {hit.publication for hit in hits}


async def test_a_new_chunker_rereads_while_the_old_reading_is_live(home: Home, first: TermEmbedder) -> None:
    """Shows that an old full reading is replaced by a new full one, never by a new quick one."""
    await begin(home)
    before = {row.id for row in await home.rows(ReadingRow)}
    serving = await home.serve(chunk_tokens=50)
    await until_read(home, serving)
    rows = {row.id: row for row in await home.rows(ReadingRow)}
    published = [
        rows[one.reading_id] for one in await home.rows(PublicationRow) if one.reading_id not in before
    ]
    assert {row.rung for row in published} == {"full"}
    assert all(row.state == "live" for row in (await home.documents("hr")).values())

    async def is_clean() -> bool:
        await serving.purge()
        left = {row.id for row in await home.rows(ReadingRow)}
        folders = {path.name for path in (home.path / "readings").glob("*/*")}
        return not left & before and folders == {str(one) for one in left}

    await home.until(is_clean)
    assert len(await home.rows(ReadingRow)) == 2 * len(FILES)


@pytest.mark.long
@pytest.mark.parametrize("is_embedder_new", [False, True], ids=["chunker", "embedder"])
async def test_an_older_version_keeps_its_full_reading(
    home: Home, first: TermEmbedder, is_embedder_new: bool
) -> None:
    """Survives a change of settings, of both rungs or of one."""
    name = "leave-0.pdf"
    await begin(home, SHORT_FILES | {name: FILES[name]})
    old = hashlib.sha256(FILES[name]).hexdigest()
    home.drop(f"hr/{name}", pdf("Leave\nThe marzipan leave has 5 days."))
    replaced = await home.serve()
    await home.until(lambda: _answer_by(home, replaced, old))
    await replaced.stop()
    if is_embedder_new:
        home.embedder = TermEmbedder("second_embedder")
    serving = await home.serve(**({} if is_embedder_new else {"chunk_tokens": 50}))
    await home.until(lambda: _answer_by(home, serving, old))

    async def is_clean() -> bool:
        await serving.purge()
        hidden = {row.id for row in await home.rows(ReadingRow) if row.sha256 == old}
        publications = await home.rows(PublicationRow)
        is_hidden = not any(one.reading_id in hidden and one.state != "removed" for one in publications)
        newest = [row.generation for row in await home.rows(ReadingRow) if row.sha256 != old]
        return is_hidden and set(newest) <= {serving.generations.quick, serving.generations.full}

    await home.until(is_clean)
    await serving.purge()
    left = {row.rung: row for row in await home.rows(ReadingRow) if row.sha256 == old}
    kept = left.pop("full")
    assert (kept.state, kept.pages, set(left)) == ("done", 4, {"quick"} if is_embedder_new else set())
    assert len(await home.files.pages(kept.id)) == 4


async def _answer_by(home: Home, serving: Ingestion, old: str) -> bool:
    """True if only other contents than the old one are live, in the ingestion's full generation."""
    rows = await answering(home)
    return bool(rows) and all(
        row.sha256 != old and row.generation == serving.generations.full for row in rows
    )


@pytest.mark.long
async def test_ingest_rereads_an_older_generation(home: Home, tmp_path: Path) -> None:
    """Shows that the same command updates a home without a service."""
    folder, hr = tmp_path / "docs", await home.channel("hr")
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    await home.ingest(folder, "hr", Rung.FULL)
    newer = home.ingestion(chunk_tokens=50)
    await newer.ingest(folder, hr, Rung.FULL, lambda _: None)
    assert {row.generation for row in await answering(home)} == {newer.generations.full}
    assert await found(home) == set(FILES)


@pytest.mark.long
async def test_a_new_embedder_never_meets_the_old_ones_vectors(home: Home, first: TermEmbedder) -> None:
    """Each space finds its own publications; words find those without vectors in the new space."""
    await begin(home)
    second = TermEmbedder("second_embedder", 48)
    second.left = 0
    home.embedder = second
    serving = await home.serve()
    await home.until_row(ReadingRow, lambda row: "does not answer" in (row.reason or ""))
    live = {row.id for row in await home.rows(PublicationRow) if row.state == "live"}
    assert await search_vectors(home, TermEmbedder("second_embedder", 48)) == set()
    assert await search_vectors(home, first) == live
    assert await found(home) == set(FILES)
    second.left = None
    await until_read(home, serving)
    live = {row.id for row in await home.rows(PublicationRow) if row.state == "live"}
    assert await search_vectors(home, second) == live
    assert await search_vectors(home, first) == set()
    assert {row.space for row in await answering(home)} == {"second_embedder"}
    assert all(row.attempts == 0 for row in await home.rows(ReadingRow) if row.rung == "full")


@pytest.mark.long
async def test_an_interrupted_full_reading_resumes(home: Home, first: TermEmbedder) -> None:
    """Shows that no chunk is embedded twice, however often it restarts."""
    for name, data in FILES.items():
        home.drop(f"hr/{name}", data)
    for allowed in (2, 4, 4, None):
        first.left = allowed
        serving = await home.serve(chunk_tokens=50, sentence_vectors=False)
        for name in FILES:
            await home.until_found("hr", "marzipan", name)
        if allowed is None:
            await until_read(home, serving)
        else:
            await home.until(lambda: _is_used_up(first))
        await serving.stop()
        async with home.database.transaction() as session:
            await session.execute(update(ReadingRow).values(next_attempt_at=None))
    assert len(first.texts) == len(set(first.texts)) > 8


async def _is_used_up(embedder: TermEmbedder) -> bool:
    return embedder.left is not None and embedder.left < embedder.batch


async def test_reverted_settings_reuse_their_readings(home: Home, first: TermEmbedder) -> None:
    """Shows that live readings are not read again, and that the detour is cleaned up."""
    await begin(home)
    before = {row.id for row in await home.rows(ReadingRow)}
    embedded = len(first.texts)
    home.embedder = TermEmbedder("second_embedder")
    home.embedder.left = 0
    detour = await home.serve(chunk_tokens=50)

    async def has_begun() -> bool:
        rows = await home.rows(ReadingRow)
        return sum(row.generation == detour.generations.quick and row.state == "done" for row in rows) == len(
            FILES
        )

    await home.until(has_begun)
    await detour.stop()
    home.embedder = first
    serving = await home.serve()
    await until_read(home, serving)

    async def is_clean() -> bool:
        await serving.purge()
        return {row.id for row in await home.rows(ReadingRow)} == before

    await home.until(is_clean)
    assert len(first.texts) == embedded
    assert {row.id for row in await answering(home)} <= before


@pytest.mark.long
async def test_live_quick_readings_are_replaced_by_new_quick_ones(home: Home, first: TermEmbedder) -> None:
    """Covers a home that stops at quick."""
    for name, data in FILES.items():
        home.drop(f"hr/{name}", data)
    old = await home.serve(stop_at="quick")
    for name in FILES:
        await home.until_found("hr", "marzipan", name)
    await old.stop()
    await until_read(home, await home.serve(stop_at="quick", chunk_tokens=50), Rung.QUICK)
    assert len(await answering(home)) == len(FILES)


async def test_a_full_reading_is_never_replaced_by_a_quick_one(home: Home, first: TermEmbedder) -> None:
    """Shows that a home that stops at quick keeps its full readings."""
    await begin(home)
    before = {row.id for row in await answering(home)}
    serving = await home.serve(stop_at="quick", chunk_tokens=50)

    async def is_read() -> bool:
        rows = await home.rows(ReadingRow)
        return sum(
            row.generation == serving.generations.quick and row.state == "done" for row in rows
        ) == len(FILES)

    await home.until(is_read)
    await serving.purge()
    async with home.database.transaction() as session:
        assert await plan(session, serving.generations) == 0
    assert {row.id for row in await answering(home)} == before


class CountingViewer:
    """A PDF process that counts page layouts."""

    def __init__(self, home: Home) -> None:
        self.looks = 0
        self._pdf = home.pdf

    async def fetch(self, path: Path) -> bytes:
        """Read."""
        return await self._pdf.fetch(path)

    async def fetch_layout(self, path: Path, first: int, last: int) -> bytes:
        """Count and lay out."""
        self.looks += 1
        return await self._pdf.fetch_layout(path, first, last)


@pytest.mark.long
async def test_another_embedder_reuses_the_page_layout(home: Home, first: TermEmbedder) -> None:
    """Shows that layout runs once per content, unless its files are corrupt."""
    viewer = CountingViewer(home)
    await begin(home, SHORT_FILES, layout=True, pdf=viewer)
    assert viewer.looks == len(FILES)
    home.embedder = TermEmbedder("second_embedder")
    serving = await home.serve(layout=True, pdf=viewer)
    await until_read(home, serving)
    assert viewer.looks == len(FILES)
    damaged, *_ = await answering(home)
    await serving.stop()
    chunks = home.files.root / damaged.id.hex[:2] / str(damaged.id) / "chunks.lines"
    chunks.write_bytes(bytes(chunks.stat().st_size))
    home.embedder = TermEmbedder("third_embedder")
    await until_read(home, await home.serve(layout=True, pdf=viewer))
    assert viewer.looks == len(FILES) + 1


class Refusing:
    """A PDF reader that refuses every file."""

    async def fetch(self, path: Path) -> bytes:
        """Raise ReaderKilled."""
        raise ReaderKilled("It needs more memory than the limit.")


@pytest.mark.long
async def test_a_content_the_new_parser_refuses_keeps_its_old_reading(
    home: Home, first: TermEmbedder
) -> None:
    """Shows that it stays live, and that the reason is shown."""
    await begin(home)
    serving = home.ingestion(chunk_tokens=50, pdf=Refusing())
    await serving.start(home.inbox)

    async def has_failed() -> bool:
        rows = await home.rows(ReadingRow)
        return sum(row.state == "failed" for row in rows) == len(FILES)

    await home.until(has_failed, seconds=120)
    async with home.database.transaction() as session:
        assert await plan(session, serving.generations) == 0
    await serving.purge()
    assert await found(home) == set(FILES)
    for document in (await home.documents("hr")).values():
        assert (document.state, document.rung) == ("live", Rung.FULL)
        assert "more memory" in (document.reason or "")


async def test_new_files_are_read_before_rereadings(home: Home, first: TermEmbedder) -> None:
    """Shows that a new file does not wait for the rereading of everything, on both rungs."""
    await begin(home)
    newer = home.ingestion(chunk_tokens=50)
    async with home.database.transaction() as session:
        assert await plan(session, newer.generations) == 0, "nobody has said that the home is read so"
        await set_current_generations(session, newer.generations)
        assert await plan(session, newer.generations) == len(FILES)
    work = ReadingQueue(LeasedQueue(home.database, ReadingRow, "test", 30), newer.generations)
    fresh = pdf("Fresh\nSomething about apricots.")
    await store(home, newer.generations, "fresh.pdf", fresh)
    claim = await work.claim(Rung.QUICK)
    assert claim is not None
    assert home.blobs.path(claim.sha256).read_bytes() == fresh


@pytest.mark.long
async def test_a_copy_in_another_channel_prioritizes_the_rereading(home: Home, first: TermEmbedder) -> None:
    """Shows that the same bytes are new in another channel, and read first."""
    await begin(home)
    newer = home.ingestion(chunk_tokens=50)
    async with home.database.transaction() as session:
        await set_current_generations(session, newer.generations)
        assert await plan(session, newer.generations) == len(FILES)
    name, data = list(FILES.items())[-1]
    await store(home, newer.generations, name, data, channel="it")
    work = ReadingQueue(LeasedQueue(home.database, ReadingRow, "test", 30), newer.generations)
    claim = await work.claim(Rung.QUICK)
    assert claim is not None
    assert home.blobs.path(claim.sha256).read_bytes() == data


async def store(home: Home, generations: Generations, file: str, data: bytes, channel: str = "hr") -> None:
    """Store a file as a scan would, and plan it in these generations."""
    await home.store(channel, file, data)
    async with home.database.transaction() as session:
        await plan(session, generations, [row.sha256 for row in await home.rows(ReadingRow)])


@pytest.mark.long
async def test_the_later_of_two_processes_decides_the_generation(home: Home, first: TermEmbedder) -> None:
    """Shows that they do not undo each other's work for ever, and that both read new files."""
    await begin(home)
    older = await home.serve()
    later = await home.serve(chunk_tokens=50)
    await until_read(home, later)
    for _ in range(3):
        for one in (older, later):
            await one.purge()
            async with home.database.transaction() as session:
                assert await plan(session, one.generations) == 0
    assert {row.generation for row in await answering(home)} == {later.generations.full}
