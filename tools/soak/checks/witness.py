"""Witness: asks continuously from a process other than the killed one, and records faults.

A document that was live once stays live until its file is removed: always with one complete content, never
with an older one than before, and as the same document, whose links stay valid.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from storage.chat.channels import Channels
from storage.documents.catalog import Catalog
from storage.errors import InfrastructureError, UnknownChannel
from storage.index.base import Hit
from storage.index.live_index import LiveIndex, SearchHits
from storage.models import LivePublication
from storage.text.analyzer import analyze
from tools.soak.rounds.world import World

REST_SECONDS = 0.15
# Engines may be slow on a busy machine, and need a while to reconnect; never longer than this.
LONGEST_SILENCE_SECONDS = 30.0
# Grace before a replaced publication is removed: a slower question may find neither old nor new.
GRACE_SECONDS = 1.0
# Minimum answered questions per kill; with fewer, the check is void.
FEWEST_ANSWERS = 2
MOST_CHUNKS = 1000


@dataclass
class Witness:
    """External reader of a home."""

    world: World
    channels: Channels
    catalog: Catalog
    index: LiveIndex
    # (channel, word) that was found and must stay so.
    answered: set[tuple[str, str]] = field(default_factory=set)
    asked: int = 0
    # The index was killed on purpose, so it may not respond.
    is_index_down: bool = False
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._newest: dict[tuple[str, str], int] = {}
        self._documents: dict[tuple[str, str], UUID] = {}
        self._heard_at = time.monotonic()
        self._chance = random.Random(1)

    def forget(self, channel: str, word: str) -> None:
        """Expect nothing of a file that is being removed: from now on, no result is correct, too."""
        self.answered.discard((channel, word))
        self._newest.pop((channel, word), None)
        self._documents.pop((channel, word), None)

    def conclude(self, kills: int) -> None:
        """Record a fault if too few questions were answered to have seen anything."""
        if self.asked < kills * FEWEST_ANSWERS:
            self._note(f"only {self.asked} questions were answered during {kills} kills")

    async def watch(self) -> None:
        """Ask in an endless loop."""
        while True:
            channel = self._chance.choice(self.world.channels)
            if papers := list(self.world.wanted(channel).values()):
                await self._ask(channel, self._chance.choice(papers).word)
            await asyncio.sleep(REST_SECONDS)

    async def ask_for_all(self) -> None:
        """Ask for every document once."""
        for channel in self.world.channels:
            for paper in list(self.world.wanted(channel).values()):
                await self._ask(channel, paper.word)

    async def _ask(self, channel: str, word: str) -> None:
        must_answer, began = (channel, word) in self.answered, time.monotonic()
        try:
            found = await self.find(channel, word)
        except UnknownChannel:
            return
        except InfrastructureError as error:
            return self._bear(error)
        self.asked, self._heard_at = self.asked + 1, time.monotonic()
        if all(paper.word != word for paper in self.world.wanted(channel).values()):
            return  # removed while it was searched
        if found.words:
            self._check(channel, word, found)
        elif must_answer and (channel, word) in self.answered and self._heard_at - began < GRACE_SECONDS:
            self._note(f"{channel} {word}: nothing answers any more")

    def _bear(self, error: InfrastructureError) -> None:
        """Tolerate failures of engines for a while, but not for good."""
        now = time.monotonic()
        if not self.is_index_down and now - self._heard_at < LONGEST_SILENCE_SECONDS:
            return
        if not self.is_index_down:
            self._note(f"no answer for {now - self._heard_at:.0f} s: {type(error).__name__}: {error}")
        self._heard_at = now

    async def find(self, channel: str, word: str) -> SearchHits:
        """Return every chunk that a person in the channel finds by this word.

        Raises:
            InfrastructureError: an engine is unavailable.
            UnknownChannel: the channel does not exist yet.
        """
        where = await self.channels.by_name(channel)
        return await self.index.search(where, analyze(word), None, limit=MOST_CHUNKS)

    def _check(self, channel: str, word: str, found: SearchHits) -> None:
        documents: defaultdict[UUID, list[LivePublication]] = defaultdict(list)
        for publication in found.publications.values():
            documents[publication.document_id].append(publication)
        for live in documents.values():
            hits = [hit for hit in found.words if hit.publication in {one.id for one in live}]
            for flaw in self.flaws(live, hits):
                self._note(f"{channel} {word}: {flaw}")
        if set(documents) != {self._documents.setdefault((channel, word), next(iter(documents)))}:
            self._note(f"{channel} {word}: another document than before answers")
        newest = max(one.version_id for one in found.publications.values())
        if newest < self._newest.get((channel, word), 0):
            self._note(f"{channel} {word}: an older version answers again")
        self._newest[channel, word] = newest
        self.answered.add((channel, word))

    def _note(self, fault: str) -> None:
        """Record a fault with its time, to locate it in the logs of the home."""
        self.faults.append(f"{datetime.now(UTC):%H:%M:%S} {fault}")

    def flaws(self, live: list[LivePublication], hits: list[Hit]) -> list[str]:
        """Return what is wrong with the chunks found for one document."""
        contents = {version for version in self.world.versions for hit in hits if version in hit.text}
        flaws = []
        if len(live) > 1:
            flaws.append(f"{len(live)} publications of one document answer")
        if len(contents) != 1:
            flaws.append(f"{len(contents)} contents are mixed")
        objects = sum(one.chunks + one.figures for one in live)
        if len(hits) != objects:
            flaws.append(f"{len(hits)} of {objects} chunks answer")
        return flaws
