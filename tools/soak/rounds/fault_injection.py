"""Faults of engines and disks: an index that resurrects removed chunks, a lost blob."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import uuid4

from storage.index.base import Index, IndexedChunk
from storage.text.analyzer import analyze
from tools.soak.checks.witness import Witness
from tools.soak.rounds.world import Paper


async def resurrect(index: Index, witness: Witness, channel: str, chance: Random) -> None:
    """Write a chunk of an unknown publication to a channel's tenant, with the words of a live document.

    Raises:
        UnknownChannel, UnknownTenant: the channel is still empty.
    """
    where = await witness.channels.by_name(channel)
    world = witness.world
    word = chance.choice(list(world.wanted(channel).values())).word
    contents = [paper.version for paper in world.versions.values() if paper.word == word]
    text = f"{word} {chance.choice(contents)} is back from the dead"
    ghost = IndexedChunk(uuid4(), 0, " ".join(analyze(text)), text, 1, 1, (), ())
    await index.write(where.tenant, [ghost])


def lose_blob(home: Path, paper: Paper) -> None:
    """Delete a blob."""
    _blob(home, paper).unlink(missing_ok=True)


def has_blob(home: Path, paper: Paper) -> bool:
    """True if a blob exists."""
    return _blob(home, paper).exists()


def _blob(home: Path, paper: Paper) -> Path:
    return home / "blobs" / paper.sha256[:2] / paper.sha256
