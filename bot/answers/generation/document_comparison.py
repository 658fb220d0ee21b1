"""Compares what several documents say on a question: quotes each under its name, and says if they differ.

Documents that a question compares are searched separately, so that none crowds out another; one that says
nothing is named. If no comparison was asked for and documents give different values, such as the allowances
of two offices, each is quoted, newest first; likewise two pages of one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from uuid import UUID

from bot.answers.citations.source_buttons import distinct_names
from bot.answers.generation.judge import Judge, Verdict
from bot.answers.generation.quote_selection import QuoteCandidate, without_labels
from bot.answers.generation.value_differences import ValueDifferences, best_of_each
from bot.answers.retrieval.ranking import document_date
from bot.answers.understanding.answer_types import asks_across_documents
from bot.answers.verification.claims import VerifiedClaim
from bot.core.models import AnalyzedQuestion, LocatedQuote, Passage, Question, Retrieval
from bot.core.ports import Retriever
from bot.core.wording import ReplyWords
from storage.models import DocumentStatus, LivePublication
from storage.task_group import gather_or_cancel


async def retrieve_each(retriever: Retriever, question: Question) -> Retrieval:
    """Search each compared document or subquestion, and interleave the results, the best of each first.

    A question without any is searched as it is.

    Raises:
        storage.errors.InfrastructureError: an engine is down or too slow.
    """
    whole = replace(question, compared=(), subquestions=())
    alone = [replace(whole, documents=frozenset({one})) for one in question.compared] or [
        whole,
        *(replace(whole, text=one) for one in question.subquestions),
    ]
    if len(alone) < 2:
        return await retriever.retrieve(alone[0])
    found = await gather_or_cancel(*map(retriever.retrieve, alone))
    turns = chain.from_iterable(zip_longest(*(one.passages for one in found)))
    passages = {(one.publication.id, one.ordinal): one for one in turns if one is not None}
    return replace(
        found[0],
        passages=tuple(passages.values()),
        figures=tuple(chain.from_iterable(one.figures for one in found)),
        rejected=tuple(chain.from_iterable(one.rejected for one in found)),
        not_live=sum(one.not_live for one in found),
        embedded=sum(one.embedded for one in found),
    )


def judge_each(
    judge: Judge,
    question: AnalyzedQuestion,
    documents: Iterable[UUID],
    passages: Sequence[Passage],
    ranked: Sequence[QuoteCandidate],
) -> dict[UUID, Verdict]:
    """Return a verdict on each document separately; arguments as in ``Judge.verdict``.

    Titles and headings are left out: they contain the name in the question, and are similar for that reason
    alone.
    """
    said = without_labels(ranked)
    return {
        document: judge.verdict(
            question,
            [one for one in passages if one.publication.document_id == document],
            [one for one in said if one.document == document],
            passages,
        )
        for document in documents
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Quotes of several documents, or of one that gives several values."""

    quotes: Sequence[QuoteCandidate]
    # They give different values for what was asked, and are sorted by the dates of their documents.
    is_differing: bool = False

    @property
    def is_within_one(self) -> bool:
        """True if one document gives them all."""
        return len({one.document for one in self.quotes}) == 1


def compare(
    question: AnalyzedQuestion,
    chosen: Sequence[QuoteCandidate],
    ranked: Sequence[QuoteCandidate],
    answering: Sequence[UUID] = (),
) -> Comparison:
    """Select the quotes of several documents, or of several pages.

    Args:
        question: as it was searched for.
        chosen: quotes that would be shown otherwise, of any document; at least one.
        ranked: quotable parts, best first.
        answering: named documents that answer, in their order.
    """
    if answering:
        best = best_of_each(ranked)
        return Comparison([best[one] for one in answering if one in best] or chosen)
    first = max(chosen, key=lambda one: one.score)
    differing = ValueDifferences(question).find(first, ranked)
    return Comparison(differing, is_differing=True) if differing else Comparison(chosen)


def compare_claims(
    question: AnalyzedQuestion, claims: Sequence[VerifiedClaim], ranked: Sequence[QuoteCandidate]
) -> Comparison | None:
    """Return a sentence's marked quote with those that give other values; None if there are none."""
    differences = ValueDifferences(question)
    for claim in claims:
        for marked in _marked(claim, ranked):
            if found := differences.find(marked, ranked, claim.text):
                return Comparison(found, is_differing=True)
    return None


def _marked(claim: VerifiedClaim, ranked: Sequence[QuoteCandidate]) -> Iterator[QuoteCandidate]:
    """Yield the marked quotes of a sentence, each with the score of the best candidate that it overlaps."""
    for quote in claim.quotes:
        text = quote.passage.text[quote.start : quote.end]
        touched = (
            one
            for one in ranked
            if one.item.passage is quote.passage and one.unit.start < quote.end and quote.start < one.unit.end
        )
        if best := next(touched, None):
            yield replace(best, unit=replace(best.unit, start=quote.start, end=quote.end, text=text))


def dated(publication: LivePublication, words: ReplyWords) -> str:
    """Return the effective or update date of a document as text; '' if it states none."""
    day = document_date(publication)
    if day is None:
        return ""
    said = words.effective if "effective" in publication.metadata else words.updated
    return said(day=day.isoformat())


def spanned(retrieval: Retrieval, cited: Sequence[LocatedQuote]) -> Sequence[UUID]:
    """Return the documents found by a question that spans several, if two and at least half are cited.

    "Which pens may be used?" spans pens, not documents: it is no omission that seven documents do not mention
    any.
    """
    if not asks_across_documents(retrieval.question.text):
        return ()
    found = {one.publication.document_id: None for one in retrieval.passages if not one.publication.web}
    quoted = {one.passage.publication.document_id for one in cited}
    return list(found) if len(quoted) >= max(2, len(found) / 2) else ()


def nothing_in(
    words: ReplyWords,
    compared: Sequence[UUID],
    documents: Sequence[DocumentStatus],
    cited: Sequence[LocatedQuote],
) -> str:
    """Return the sentence that names the compared documents without a citation; '' if all are cited."""
    quoted = {one.passage.publication.document_id for one in cited}
    called = {one.document: (one.title, "", one.file) for one in documents if one.document in compared}
    names = distinct_names(called)
    missing = [names[one] for one in compared if one in names and one not in quoted]
    return words.nothing_found_in(missing) if missing else ""
