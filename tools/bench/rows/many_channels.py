"""Row ``growth``: a question in one of many channels, compared to a channel with a server of its own.

The channels are filled through ``storage`` directly, which takes half an hour; they are kept, so that the
next run continues.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from statistics import median
from uuid import uuid4

from sqlalchemy import func, select
from sqlmodel import col

from bot.core.models import Question
from storage.clock import utc_now
from storage.folders.folders import Folders
from storage.index.base import IndexedChunk, document_facet
from storage.models import Channel, LivePublication
from storage.sql.tables import DocumentRow, PublicationRow, VersionRow
from storage.text.analyzer import index_terms
from tools.bench.figures import Figure
from tools.bench.rows.bench_home import BenchHome, RandomEmbedder, open_home
from tools.bench.timing import alternate, percentiles

CHUNKS, PAGES = 1000, 20
TURNS, WARMED_BY = 100, 5
LONGEST, MOST_TIMES = 50.0, 1.5
# Interval of progress messages.
TOLD_EVERY = 10.0


async def bench_growth(work: Path, channels: int) -> list[Figure]:
    """Alternate between random channels of ``channels``, and the only channel of another home."""
    async with open_home(work / "one", "embedded") as alone, open_home(work / "many", "embedded") as crowded:
        lonely, many = await _first(alone), await _fill(crowded, channels)
        asked = await alone.questions(WARMED_BY + TURNS)
        chance = random.Random(0)

        async def ask_in_a_crowd(number: int) -> None:
            await _ask(crowded, chance.choice(many), asked[number])

        async def ask_alone(number: int) -> None:
            await _ask(alone, lonely, asked[number])

        await alternate(ask_in_a_crowd, ask_alone, WARMED_BY)
        asked = asked[WARMED_BY:]
        turns = await alternate(ask_in_a_crowd, ask_alone, TURNS)
        chunks = await crowded.chunks(many[0])
    middle = median(turns.ours)
    return [
        Figure(
            f"a question without a model, Weaviate, {len(many):,} channels of {chunks:,} chunks",
            f"p50 <= {LONGEST:.0f} ms, <= {MOST_TIMES} x",
            percentiles(turns.ours),
            f"one such channel alone {percentiles(turns.other)}",
            f"{turns.ratio:.2f} x",
            middle <= LONGEST and turns.ratio <= MOST_TIMES,
        )
    ]


async def _ask(home: BenchHome, channel: Channel, text: str) -> None:
    answer = await home.answering.answer(Question("", text, channel, utc_now()))
    if answer.state != "passages":
        raise RuntimeError(f"a question ended {answer.state}")


async def _first(home: BenchHome) -> Channel:
    """Return a channel filled by real ingestion."""
    channel = await home.channel("0")
    await home.fill(channel, CHUNKS, PAGES)
    return channel


async def _fill(home: BenchHome, count: int) -> list[Channel]:
    """Return ``count`` channels with the same documents; existing ones are kept."""
    first = await _first(home)
    published = await _live(home, first)
    chunks = [chunk for one in published for chunk in await _indexed(home, one)]
    channels, told = [first], time.monotonic()
    for number in range(1, count):
        channel = await home.channel(str(number))
        if not await _has_documents(home, channel):
            await _copy(home, channel, published, chunks)
        channels.append(channel)
        if time.monotonic() - told > TOLD_EVERY:
            told = time.monotonic()
            print(f"    {number:,} of {count:,} channels", flush=True)
    return channels


async def _live(home: BenchHome, channel: Channel) -> list[LivePublication]:
    held = await home.index.publications(channel.tenant)
    return list((await home.stores.catalog.live(channel.id, held.keys())).values())


async def _indexed(home: BenchHome, one: LivePublication) -> list[IndexedChunk]:
    """Return the chunks of a publication in the form that the publisher writes."""
    texts, chunks = RandomEmbedder(home.embedder), await home.stores.files.chunks(one.reading_id)
    vectors = await texts.aembed([chunk.text for chunk in chunks])
    title = f"{one.title} {PurePosixPath(one.file).stem}"
    return [
        IndexedChunk(
            one.id,
            chunk.ordinal,
            index_terms(title, chunk.heading_path, chunk.text),
            chunk.text,
            chunk.first_page,
            chunk.last_page,
            chunk.heading_path,
            (document_facet(one.document_id),),
            vector.tolist(),
            home.embedder.space,
        )
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]


async def _has_documents(home: BenchHome, channel: Channel) -> bool:
    query = select(func.count()).where(col(PublicationRow.channel_id) == channel.id)
    async with home.stores.database.snapshot() as session:
        return bool(await session.scalar(query))


async def _copy(
    home: BenchHome, channel: Channel, published: Sequence[LivePublication], chunks: Sequence[IndexedChunk]
) -> None:
    """Copy publications; the index is written first, so that SQL only knows complete channels."""
    if await home.index.has_tenant(channel.tenant):
        await home.index.drop_tenant(channel.tenant)
    await home.index.ensure_tenant(channel.tenant)
    folder = await Folders(home.stores.database).ensure(channel.id, f"/library/{channel.name}", watched=False)
    rows, documents = {}, []
    for one in published:
        document = DocumentRow(id=uuid4(), channel_id=channel.id, folder_id=folder.id, file=one.file)
        rows[one.id] = (document, uuid4())
        documents.append(document)
    await home.index.write(channel.tenant, [_moved(chunk, *rows[chunk.publication]) for chunk in chunks])
    async with home.stores.database.transaction() as session:
        session.add_all(documents)
        await session.flush()
        for one in published:
            document, publication = rows[one.id]
            version = VersionRow(document_id=document.id, number=1, sha256=one.sha256)
            session.add(version)
            await session.flush()
            session.add(
                PublicationRow(
                    id=publication,
                    channel_id=channel.id,
                    version_id=version.id,
                    reading_id=one.reading_id,
                    rung=one.rung.value,
                    state="live",
                    live_at=utc_now(),
                )
            )


def _moved(chunk: IndexedChunk, document: DocumentRow, publication: object) -> IndexedChunk:
    return replace(chunk, publication=publication, facets=(document_facet(document.id),))
