"""What engines and disks do by themselves: an index that resurrects what was removed, a blob that is gone."""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import uuid4

from storage.index.base import Index, IndexedChunk
from storage.text.analyzer import analyze
from tools.soak.checks.witness import Witness
from tools.soak.rounds.world import Paper


async def resurrect(index: Index, witness: Witness, channel: str, chance: Random) -> None:
    """Put a chunk of an unknown publication into a channel's tenant, with the words of what answers there.

    Raises:
        UnknownChannel, UnknownTenant: nothing was there yet.
    """
    where = await witness.channels.by_name(channel)
    world = witness.world
    word = chance.choice(list(world.wanted(channel).values())).word
    contents = [paper.version for paper in world.versions.values() if paper.word == word]
    text = f"{word} {chance.choice(contents)} is back from the dead"
    ghost = IndexedChunk(uuid4(), 0, " ".join(analyze(text)), text, 1, 1, (), ())
    await index.write(where.tenant, [ghost])


def lose_blob(home: Path, paper: Paper) -> None:
    """The disk forgets a content."""
    _blob(home, paper).unlink(missing_ok=True)


def has_blob(home: Path, paper: Paper) -> bool:
    """True if the disk holds a content."""
    return _blob(home, paper).exists()


def _blob(home: Path, paper: Paper) -> Path:
    return home / "blobs" / paper.sha256[:2] / paper.sha256
