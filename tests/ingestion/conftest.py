"""Fixtures of the ingestion room's tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from faulty_index import FaultyIndex
from ingestion_home import Home

from storage.blobs import Blobs
from storage.catalog import Catalog
from storage.channels import Channels
from storage.database import Database
from storage.embedder import BundledEmbedder
from storage.index.embedded import EmbeddedIndex
from storage.pdf.process import PdfProcess
from storage.readings import ReadingFiles
from storage.settings import StorageSettings


@pytest.fixture(scope="session")
def embedder() -> Iterator[BundledEmbedder]:
    """The bundled embedder."""
    loaded = BundledEmbedder.load(None, 2)
    yield loaded
    loaded.close()


@pytest.fixture
async def home(tmp_path: Path, embedder: BundledEmbedder) -> AsyncIterator[Home]:
    """A fresh home with real engines."""
    path = tmp_path / "home"
    database = await Database.open(f"sqlite:///{path}/footnote.db")
    index = FaultyIndex(EmbeddedIndex(path / "index"))
    made = Home(
        path=path,
        database=database,
        blobs=Blobs(path / "blobs"),
        files=ReadingFiles(path / "readings"),
        pdf=PdfProcess(StorageSettings()),
        embedder=embedder,
        index=index,
        channels=Channels(database),
        catalog=Catalog(database),
    )
    yield made
    for one in made.ingestions:
        await one.stop()
    await made.pdf.aclose()
    await index.aclose()
    await database.aclose()
