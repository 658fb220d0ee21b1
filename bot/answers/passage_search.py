"""Passages for programs that read them themselves: found as for an answer, each with a citation."""

from __future__ import annotations

from collections.abc import Sequence

from bot.answers.citations.citations import CitationService
from bot.answers.generation.answer_writer import AnswerWriter
from bot.answers.generation.quote_selection import QuoteCandidate
from bot.answers.verification.claims import place
from bot.core.models import Evidence, LocatedQuote, Question, Retrieval
from bot.core.ports import FoundPassage


async def cite_passages(
    question: Question,
    retrieval: Retrieval,
    evidence: Sequence[Evidence],
    writer: AnswerWriter,
    citations: CitationService,
) -> Sequence[FoundPassage]:
    """Return each passage of the evidence with a citation of its sentence that fits the query best.

    Raises:
        storage.errors.InfrastructureError: readings or SQL are unavailable, or the embedder is too slow.
    """
    ranked = await writer.rank_quotes(retrieval.question, evidence)
    quotes = [_best_quote(item, ranked.candidates) for item in evidence]
    cited = await citations.cite(question.channel, quotes)
    return [
        FoundPassage(item.passage.publication.document_id, citation, item.passage.text, item.passage.score)
        for citation, item in zip(cited, evidence, strict=True)
    ]


def _best_quote(item: Evidence, candidates: Sequence[QuoteCandidate]) -> LocatedQuote:
    """Return the best sentence of a passage that is no heading; the whole passage if it has none."""
    own = [one for one in candidates if one.item.number == item.number]
    best = next((one for one in own if not one.is_label), own[0] if own else None)
    return place(item, best.unit.start, best.unit.end) if best else place(item, 0, len(item.passage.text))
