"""Orders what both legs of a search found: by words and meaning, by the documents that the question names or
is about, by edition and age. The weights were measured on the tuning half of ``tests/evaluation``.

A document is what a question is about when it holds words of the question that few of the found documents
hold. "Did the Panama pilot file a flight plan?" is about the report that says Panama, though the passage on
flight plans does not: what a document holds anywhere among its found passages counts for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from uuid import UUID

from bot.core.models import AnalyzedQuestion, Passage, Rejected
from bot.core.retrieval.diversification import diversify, spans_documents, with_duplicates
from bot.core.retrieval.document_names import named_documents
from bot.core.retrieval.fusion import fuse, rank_order
from bot.core.retrieval.recency import Recency, outdated
from bot.core.understanding.exact_terms import identified_documents
from bot.core.understanding.question_terms import QuestionTerms
from storage.index.live_index import SearchHits


def document_shares(terms: Collection[str], passages: Iterable[Passage]) -> dict[UUID, float]:
    """Publication -> share (0-1) of the question's weight that its passages hold together.

    A term weighs by how few of the found publications hold it, so that what all of them say singles out none.
    """
    held: dict[UUID, set[str]] = {}
    for passage in passages:
        known = held.setdefault(passage.publication.id, set())
        known.update(term for term in terms if term in passage.terms)
    weights = {term: _rarity(term, held) for term in terms}
    total = sum(weights.values())
    return {
        id_: sum(weights[term] for term in known) / total if total else 0.0 for id_, known in held.items()
    }


def _rarity(term: str, held: Mapping[UUID, Collection[str]]) -> float:
    holders = sum(term in known for known in held.values())
    return max(math.log((len(held) + 1) / (holders + 0.5)), 0.0)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages in their order."""

    passages: list[Passage]
    copies: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The weights of a ranking."""

    words_weight: float = 0.45
    """Share (0-1) of BM25 in the mix of words and meaning; the rest is the cosine."""
    coverage_weight: float = 0.5
    """What holding the question's words adds, however often, names and codes a little; beside a mix of at
    most 1."""
    named_weight: float = 0.25
    """What being of the document that the question names or singles out adds."""
    document_weight: float = 0.5
    """What being of a document that holds the question's rarer words anywhere adds."""
    outdated_share: float = 0.8
    """What the relevance of a passage counts when another edition of its procedure is newer: one that is
    clearly better, or whose document the question names, still comes first."""
    recency: Recency = field(default_factory=Recency)

    def order(
        self, question: AnalyzedQuestion, rare: Sequence[str], found: SearchHits, today: date
    ) -> Ranked:
        """Every passage once, best first; near-identical ones as their best copy alone.

        Args:
            question: as analyzed in its channel.
            rare: its codes, numbers and names that few chunks hold.
            found: hits of both legs.
            today: what ages count to.
        """
        passages = fuse(found, self.words_weight)
        named = named_documents(question.terms, set(found.publications.values()))
        identified = identified_documents(rare, passages)
        shares = {id_: max(share, identified.get(id_, 0.0)) for id_, share in named.items()}
        weighed = self._weighed(question, passages, shares, outdated(found.publications.values(), today))
        deduplicated = list(with_duplicates(self.recency.order(weighed, today)))
        ranked = [passage for passage, earlier in deduplicated if earlier is None]
        if spans_documents(question.text):
            ranked = diversify(
                ranked, {found.publications[id_].document_id for id_, share in shares.items() if share}
            )
        return Ranked(ranked, tuple(Rejected(*one) for one in deduplicated if one[1]))

    def _weighed(
        self,
        question: AnalyzedQuestion,
        passages: Sequence[Passage],
        named: dict[UUID, float],
        old: Collection[UUID],
    ) -> list[Passage]:
        """The passages with a relevance of 0-1."""
        asked = QuestionTerms(question)
        about = document_shares(asked.weights, passages)
        most = 1 + self.coverage_weight + self.named_weight + self.document_weight

        def weigh(passage: Passage) -> Passage:
            id_, coverage = passage.publication.id, asked.aspect_coverage(passage.terms)
            mixed = passage.score + self.coverage_weight * coverage
            kept = mixed * (self.outdated_share if id_ in old else 1.0)
            score = (kept + self.named_weight * named[id_] + self.document_weight * about[id_]) / most
            score_parts = {
                "mix": passage.score,
                "coverage": coverage,
                "named": named[id_],
                "document": about[id_],
            }
            return replace(
                passage, score=score, parts=(*score_parts.items(), ("outdated", float(id_ in old)))
            )

        return sorted(map(weigh, passages), key=rank_order)


USUAL = Ranking()
"""With the weights that settings have by default."""
