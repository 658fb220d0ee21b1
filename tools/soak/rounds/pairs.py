"""Engine pairs: an index and a database, and the settings of a home on them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from engines.postgres import RealPostgres, running_postgres
from engines.weaviate import RealWeaviate
from fakes.tiny_embedder import write_embedder

from storage.index.base import Index
from storage.index.embedded.index import EmbeddedIndex
from tools.soak.checks.targets import targets
from tools.soak.checks.witness import GRACE_SECONDS
from tools.soak.rounds.world import WORDS

PAIRS = ("embedded/SQLite", "Weaviate/SQLite", "embedded/PostgreSQL", "Weaviate/PostgreSQL")

# All waits are as short as possible, so that a kill can hit every step.
HASTE = {
    "FOOTNOTE_SCAN_SECONDS": "0.3",
    "FOOTNOTE_REST_SECONDS": "1",
    "FOOTNOTE_LEASE_SECONDS": "3",
    "FOOTNOTE_RETIRE_GRACE_SECONDS": str(GRACE_SECONDS),
    "FOOTNOTE_DELETE_GRACE_SECONDS": "2",
    "FOOTNOTE_SWEEP_GRACE_SECONDS": "3",
    "FOOTNOTE_ASK_BEFORE_DELETING_SHARE": "1",
    "FOOTNOTE_CHUNK_TOKENS": "60",
    "FOOTNOTE_EMBED_THREADS": "1",
}


@dataclass
class Pair:
    """Pair of engine and database with its servers; None where an engine needs none."""

    name: str
    weaviate: RealWeaviate | None
    postgres: RealPostgres | None
    # Whether to run layout analysis: one second of CPU per page, and two per life.
    layout: bool = True

    def aims(self, seed: int, kills: int) -> list[str]:
        """Return the targets of a round's kills."""
        return targets(seed, kills, has_server=self.weaviate is not None)

    def place(self, home: Path) -> Place:
        """Return a fresh home on these engines."""
        home.mkdir(parents=True)
        write_embedder(home / "embedder", WORDS)
        url = self.postgres.make_database() if self.postgres else f"sqlite:///{home / 'footnote.db'}"
        return Place(home, url, self.weaviate, {**HASTE, "FOOTNOTE_LAYOUT": str(self.layout)})


@dataclass
class Place:
    """A home with the locations of its engines."""

    home: Path
    database_url: str
    weaviate: RealWeaviate | None
    settings: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process on this home, with an embedder that loads at once."""
        told = {**self.settings, "FOOTNOTE_HOME": str(self.home), "DATABASE_URL": self.database_url}
        told["FOOTNOTE_EMBEDDER"] = str(self.home / "embedder")
        if self.weaviate:
            told |= self.weaviate.settings
        return told

    async def open_index(self) -> Index:
        """Open the index from outside of any life."""
        return await self.weaviate.connect() if self.weaviate else EmbeddedIndex(self.home / "index", 10)


@contextmanager
def servers(names: Sequence[str], folder: Path) -> Iterator[list[Pair]]:
    """Yield pairs with their own servers; Weaviate's data is in ``folder``."""
    with ExitStack() as stack:
        yield [
            Pair(
                name,
                stack.enter_context(_weaviate(folder)) if name.startswith("Weaviate") else None,
                stack.enter_context(running_postgres()) if name.endswith("PostgreSQL") else None,
            )
            for name in names
        ]


@contextmanager
def _weaviate(folder: Path) -> Iterator[RealWeaviate]:
    own = Path(mkdtemp(prefix="weaviate-", dir=folder))
    server = RealWeaviate(own)
    try:
        server.start()
        yield server
    finally:
        if server.has_begun:
            server.stop()
        shutil.rmtree(own)
