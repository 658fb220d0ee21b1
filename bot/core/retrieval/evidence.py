"""The evidence of a question: the passages that an answerer reads, and the text around them.

Text is followed no further than its section, one chunk on and one back; a table as far as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.core.models import Evidence, Passage
from storage.models import Chunk, LivePublication
from storage.queues.reading_repair import RepairingReadings
from storage.text.analyzer import HeldTerms, index_terms
from storage.text.token_counts import count_tokens

NEIGHBOUR_SHARE = 0.9
"""Share of its relevance that a passage lends to one beside it."""

MAX_TABLE_CHUNKS = 4
"""Chunks that a table is followed for in each direction."""


class Expansion:
    """The text around the passages of one question, within a token budget."""

    def __init__(self, evidence: Sequence[Evidence], chunks: RepairingReadings, tokens: int) -> None:
        """``tokens`` (cl100k_base): what may be added to ``evidence``."""
        self._expanded = list(evidence)
        self._places = {_place(item.passage, item.passage.ordinal) for item in evidence}
        self._chunks = chunks
        self._tokens = tokens

    async def expand(self) -> list[Evidence]:
        """The evidence, and behind it the chunks beside its passages, those of the best first.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached.
        """
        for item in tuple(self._expanded):
            await self._follow(item.passage, 1)
            await self._follow(item.passage, -1)
        return self._expanded

    async def _follow(self, passage: Passage, step: int) -> None:
        """Go on from a passage in one direction."""
        edge = passage.text
        for away in range(1, MAX_TABLE_CHUNKS + 1):
            chunk = await self._read(passage, passage.ordinal + away * step)
            in_table = chunk is not None and _share_a_table(edge, chunk.text, step)
            if chunk is None or not (in_table or (away == 1 and chunk.heading_path == passage.heading_path)):
                return
            self._add(passage, chunk)
            edge = chunk.text

    async def _read(self, passage: Passage, ordinal: int) -> Chunk | None:
        """The chunk at a place of the passage's reading, when it is new and fits the budget."""
        is_inside = 0 <= ordinal < passage.publication.chunks
        if self._tokens <= 0 or not is_inside or _place(passage, ordinal) in self._places:
            return None
        (chunk,) = await self._chunks.chunks_at([(passage.publication.reading_id, ordinal)])
        return chunk if chunk.tokens <= self._tokens else None

    def _add(self, passage: Passage, chunk: Chunk) -> None:
        title = passage.publication.title
        neighbour = replace(
            passage,
            ordinal=chunk.ordinal,
            text=chunk.text,
            first_page=chunk.first_page,
            last_page=chunk.last_page,
            heading_path=chunk.heading_path,
            score=NEIGHBOUR_SHARE * passage.score,
            bm25=None,
            vector=None,
            terms=HeldTerms.of(index_terms(title, chunk.heading_path, chunk.text)),
        )
        self._tokens -= chunk.tokens
        self._places.add(_place(neighbour, chunk.ordinal))
        self._expanded.append(Evidence(len(self._expanded) + 1, neighbour, chunk.page_starts, chunk.words))


def evidence_of(number: int, publication: LivePublication, chunk: Chunk, score: float = 0.0) -> Evidence:
    """A chunk as evidence that no search found: what is asked for by its document or its figure."""
    passage = Passage(
        publication,
        chunk.ordinal,
        chunk.text,
        chunk.first_page,
        chunk.last_page,
        chunk.heading_path,
        score,
        bm25=None,
        vector=None,
    )
    return Evidence(number, passage, chunk.page_starts, chunk.words)


def _place(passage: Passage, ordinal: int) -> tuple[object, int]:
    return passage.publication.reading_id, ordinal


def _share_a_table(text: str, other: str, step: int) -> bool:
    """Whether a text ends (or begins, for a step back) in rows that ``other`` goes on with."""
    first, second = (text, other) if step > 0 else (other, text)
    return first.rstrip().rpartition("\n")[2].startswith("|") and second.lstrip().startswith("|")


async def gather_evidence(
    passages: Sequence[Passage], chunks: RepairingReadings, *, most: int, tokens: int
) -> list[Evidence]:
    """The first ``most`` passages that fit into ``tokens`` (cl100k_base), numbered from 1.

    The best passage is always among them.

    Raises:
        storage.errors.InfrastructureError: readings cannot be reached.
    """
    chosen: list[Passage] = []
    for passage in passages[:most]:
        tokens -= count_tokens(passage.text)
        if chosen and tokens < 0:
            break
        chosen.append(passage)
    read = await chunks.chunks_at([(one.publication.reading_id, one.ordinal) for one in chosen])
    return [
        Evidence(number, passage, chunk.page_starts, chunk.words)
        for number, (passage, chunk) in enumerate(zip(chosen, read, strict=True), start=1)
    ]
