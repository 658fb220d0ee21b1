"""Orders what both legs of a search found: by words and meaning, by the documents that the question names,
by edition and age, and so that several documents take turns when the question spans them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from uuid import UUID

from bot.core.editions import outdated
from bot.core.exactness import identified_documents
from bot.core.fusion import mix, rank_order
from bot.core.likeness import distinct
from bot.core.models import AnalyzedQuestion, Passage
from bot.core.naming import named_documents
from bot.core.ports import FoundChunks
from bot.core.recency import Recency
from bot.core.spanning import spans_documents, spread


@dataclass(frozen=True, slots=True)
class Ranking:
    """The weights of a ranking."""

    words_weight: float = 0.6
    """Share (0-1) of BM25 in a relevance; the rest is the cosine."""
    named_weight: float = 0.25
    """What being the document that the question names or singles out adds to a relevance of at most 1."""
    outdated_share: float = 0.8
    """What the relevance of a passage counts when another edition of its procedure is newer: one that is
    clearly better, or whose document the question names, still comes first."""
    recency: Recency = field(default_factory=Recency)

    def order(
        self, question: AnalyzedQuestion, rare: Sequence[str], found: FoundChunks, today: date
    ) -> list[Passage]:
        """Every passage once, best first; near-identical ones as their best copy alone.

        Args:
            question: as analyzed in its channel.
            rare: its codes, numbers and names that few chunks hold.
            found: hits of both legs.
            today: what ages count to.
        """
        passages = mix(found, self.words_weight)
        old = outdated(found.publications.values(), today)
        passages = [self._holding_back(passage, old) for passage in passages]
        shares = self._named(question, rare, found, passages)
        if any(shares.values()):
            passages = [self._preferring(passage, shares[passage.publication.id]) for passage in passages]
        ranked = distinct(self.recency.order(sorted(passages, key=rank_order), today))
        if not spans_documents(question.text):
            return ranked
        named = {found.publications[id_].document_id for id_, share in shares.items() if share}
        return spread(ranked, named)

    def _named(
        self,
        question: AnalyzedQuestion,
        rare: Sequence[str],
        found: FoundChunks,
        passages: Sequence[Passage],
    ) -> Mapping[UUID, float]:
        """Publication -> how much of its name, or of what only it holds, the question says."""
        named = named_documents(question.terms, set(found.publications.values()))
        identified = identified_documents(rare, passages)
        return {id_: max(share, identified.get(id_, 0.0)) for id_, share in named.items()}

    def _holding_back(self, passage: Passage, old: Collection[UUID]) -> Passage:
        if passage.publication.id not in old:
            return passage
        return replace(passage, score=passage.score * self.outdated_share)

    def _preferring(self, passage: Passage, share: float) -> Passage:
        return replace(passage, score=(passage.score + self.named_weight * share) / (1 + self.named_weight))


USUAL = Ranking()
"""With the weights that settings have by default."""
