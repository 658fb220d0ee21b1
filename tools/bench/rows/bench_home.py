"""In-process home for benchmarks: real PDFs, readings and engines, with random vectors.

The values of a vector do not affect speed, and embedding 10,000 chunks takes half an hour.
"""

from __future__ import annotations

import os
import random
import re
import sys
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import select, update
from sqlmodel import col

from bot import bootstrap
from bot.answers.pipeline import Answering
from bot.bootstrap import build_answering, build_ingestion
from bot.public_links import open_links
from bot.settings import BotSettings, Settings
from ingestion.settings import IngestionSettings
from storage.documents.progress import Progress
from storage.embeddings.base import Embedder, Vectors
from storage.index.base import Index
from storage.models import Channel, ChannelKey, Platform, Rung
from storage.settings import StorageSettings
from storage.sql.tables import PublicationRow, ReadingRow
from storage.stores import Stores, open_embedder, open_index, open_pdf_process
from tools.bench.corpus import PAGES, pdfs

_WORD = re.compile(r"\b[a-z]{3,}\b")


class RandomEmbedder:
    """Embedder with the shape of another one; its random vectors depend on the text only."""

    def __init__(self, like: Embedder) -> None:
        self.id, self.space, self.dimensions = like.id, like.space, like.dimensions
        self.window, self.batch, self.tokenizer = like.window, 256, like.tokenizer
        self.count = like.count

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Return a random unit vector per text, reproducibly."""
        seeds = (zlib.crc32(text.encode()) for text in texts)
        made = [np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds]
        vectors: Vectors = np.array(made, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def aclose(self) -> None:
        """Do nothing: no resources are held."""


@dataclass(frozen=True, slots=True)
class BenchHome:
    """An open home with its engines."""

    path: Path
    settings: Settings
    stores: Stores
    embedder: Embedder
    index: Index
    answering: Answering

    async def channel(self, name: str) -> Channel:
        """Return a local channel, created if it is new."""
        return await self.stores.channels.ensure(ChannelKey(Platform.LOCAL, "", name))

    async def chunks(self, channel: Channel) -> int:
        """Return the number of a channel's chunks in the index."""
        if not await self.index.has_tenant(channel.tenant):
            return 0
        return (await self.index.document_frequencies(channel.tenant, []))[0]

    async def fill(self, channel: Channel, chunks: int, pages: int = PAGES) -> None:
        """Ingest documents with ``pages`` pages until the channel has at least ``chunks`` chunks."""
        files = 1
        while (held := await self.chunks(channel)) < chunks:
            files = max(files, -(-chunks * files // held) if held else 1)
            await self._ingest(channel, pdfs(files, pages))
            await self._tidy(channel)

    async def _ingest(self, channel: Channel, files: Sequence[Path]) -> None:
        folder = self.path / "documents" / channel.name
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if not (folder / file.name).exists():
                os.link(file, folder / file.name)
        async with open_pdf_process(self.stores, readers=self.settings.ingestion.read_workers) as pdf:
            ingestion = build_ingestion(
                self.settings, self.stores, RandomEmbedder(self.embedder), self.index, pdf
            )
            await ingestion.ingest(folder, channel, Rung.FULL, _show)

    async def _tidy(self, channel: Channel) -> None:
        """Remove retired publications at once, as the service does two minutes later."""
        live = select(col(PublicationRow.id)).where(
            col(PublicationRow.channel_id) == channel.id, col(PublicationRow.state) == "live"
        )
        async with self.stores.database.transaction() as session:
            kept = set(await session.scalars(live))
            retired = update(PublicationRow).where(col(PublicationRow.state) == "retired")
            await session.execute(retired.values(state="removed"))
        held = await self.index.publications(channel.tenant)
        for one in held.keys() - kept:
            await self.index.remove(channel.tenant, one, held[one])

    async def questions(self, count: int, seed: int = 0) -> list[str]:
        """Return questions made of the words of random sentences from random chunks."""
        async with self.stores.database.snapshot() as session:
            full = (
                select(col(ReadingRow.id))
                .where(col(ReadingRow.rung) == "full")
                .order_by(col(ReadingRow.sha256))
            )
            readings = list(await session.scalars(full))
        chance, found = random.Random(seed), []
        while len(found) < count:
            text = chance.choice(await self.stores.files.wordless_chunks(chance.choice(readings))).text
            words = _WORD.findall(chance.choice(text.split(".")))
            if len(words) >= 8:
                found.append(f"What is the {' '.join(words[:8])}?")
        return found


@asynccontextmanager
async def open_home(path: Path, weaviate_url: str | None) -> AsyncIterator[BenchHome]:
    """Yield a home with its engines; ``weaviate_url`` chooses the index."""
    settings = Settings(
        StorageSettings(home=path, weaviate_url=weaviate_url),
        BotSettings(answer_probability=0),  # with random vectors, no answer would reach a threshold
        IngestionSettings(layout=False, ocr=False),
    )
    async with (
        bootstrap.open_home(settings) as stores,
        open_embedder(settings.storage, bootstrap.embedding_key(settings)) as embedder,
        open_index(stores) as index,
        build_answering(
            settings, stores, embedder, index, await open_links(settings, stores.database)
        ) as answering,
    ):
        yield BenchHome(path, settings, stores, embedder, index, answering)


def _show(progress: Progress) -> None:
    if progress.full and sys.stdout.isatty():
        print(f"    {progress.full.files_done} of {progress.files} files", end="\r", flush=True)
