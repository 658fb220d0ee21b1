"""The evidence of a question: the passages that an answerer reads, the text around them, and whether it is
near enough to the question to answer it.

Text is followed no further than its section, one chunk on and one back; a table as far as it goes. Likeness
of meaning, with the share of the question's idf weight that a passage covers, was the steadiest signal for
questions off the subject; it is asked before a model too, because a model invents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.core.models import AnalyzedQuestion, Evidence, Passage
from bot.core.understanding.question_terms import QuestionTerms
from storage.models import Chunk
from storage.queues.reading_repair import RepairingReadings
from storage.text.analyzer import HeldTerms, index_terms
from storage.text.token_counts import count_tokens

NEIGHBOUR_SHARE = 0.9
"""Share of its relevance that a passage lends to one beside it."""

MAX_TABLE_CHUNKS = 4
"""Chunks that a table is followed for in each direction."""


COVERAGE = 0.3
"""What covering all of a question's words adds to a cosine."""


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


class EvidenceGate:
    """Lets a question through when one passage is near enough to it."""

    def __init__(
        self, *, least_likeness: float = 0.35, enough_coverage: float = 0.6, least_words: float = 0.35
    ) -> None:
        """Nothing is asked here yet.

        Args:
            least_likeness: of cosine and weighed coverage together; measured for the bundled embedder.
            enough_coverage: opens by itself, so that codes and names count without any meaning.
            least_words: coverage of a passage that has no vector to compare.
        """
        self._least_likeness = least_likeness
        self._enough_coverage = enough_coverage
        self._least_words = least_words

    def opens(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> bool:
        """Whether an answer may be written from this evidence."""
        wordings = [QuestionTerms(wording) for wording in (question, *question.wordings)]
        return any(self._is_enough(asked, item.passage) for asked in wordings for item in evidence)

    def _is_enough(self, asked: QuestionTerms, passage: Passage) -> bool:
        coverage = asked.coverage(passage.terms)
        if passage.vector is None:
            return coverage >= self._least_words
        is_like = passage.vector + COVERAGE * coverage >= self._least_likeness
        return is_like or coverage >= self._enough_coverage
