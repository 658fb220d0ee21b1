"""What several documents say on one question: each quoted under its name, and where they differ, that.

Documents that a question names beside one another are searched one by one, so that none crowds out another;
one that says nothing on it is named. Where nobody asked for several, and they give other values for what was
asked, as two offices do for an allowance, each is quoted, the newest first; so are two pages of one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from uuid import UUID

from bot.core.citations.source_buttons import distinct_names
from bot.core.generation.judge import Judge, Verdict
from bot.core.generation.quote_selection import QuoteCandidate, without_labels
from bot.core.generation.value_differences import ValueDifferences, best_of_each
from bot.core.models import AnalyzedQuestion, LocatedQuote, Passage, Question, Retrieval
from bot.core.ports import Retriever
from bot.core.retrieval.ranking import day_of
from bot.core.understanding.answer_types import asks_across_documents
from bot.core.verification.claims import VerifiedClaim
from bot.core.wording import ReplyWords
from storage.models import DocumentStatus, LivePublication
from storage.task_group import gather_or_cancel


async def retrieve_each(retriever: Retriever, question: Question) -> Retrieval:
    """What each of the compared documents holds on the question, in turns, the best of each first.

    Raises:
        storage.errors.InfrastructureError: an engine is down or late.
    """
    alone = [replace(question, documents=frozenset({one}), compared=()) for one in question.compared]
    found = await gather_or_cancel(*map(retriever.retrieve, alone))
    turns = chain.from_iterable(zip_longest(*(one.passages for one in found)))
    return replace(
        found[0],
        passages=tuple(passage for passage in turns if passage is not None),
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
    """Return the verdict on each document by itself; arguments as of ``Judge.verdict``.

    Titles and headings are left out: they hold the name that the question gives, and are near for that alone.
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
    # They give different values for what was asked, and stand in the order of their documents' days.
    is_differing: bool = False

    @property
    def is_within_one(self) -> bool:
        """One document gives them all."""
        return len({one.document for one in self.quotes}) == 1


def compare(
    question: AnalyzedQuestion,
    chosen: Sequence[QuoteCandidate],
    ranked: Sequence[QuoteCandidate],
    answering: Sequence[UUID] = (),
) -> Comparison:
    """What is quoted of several documents, or of several pages.

    Args:
        question: as it was searched for.
        chosen: what would be quoted, whatever document it is of; at least one.
        ranked: everything that may be quoted, best first.
        answering: the documents that were named, and that answer, in their order.
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
    """Where a model's sentence is marked, and what gives other values than it does; None: nothing does."""
    differences = ValueDifferences(question)
    for claim in claims:
        for marked in _marked(claim, ranked):
            if found := differences.find(marked, ranked, claim.text):
                return Comparison(found, is_differing=True)
    return None


def _marked(claim: VerifiedClaim, ranked: Sequence[QuoteCandidate]) -> Iterator[QuoteCandidate]:
    """What a sentence is marked at, each mark with the score of the best candidate that it touches."""
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
    """Say the day from which a document counts; '' where it says none."""
    day = day_of(publication)
    if day is None:
        return ""
    said = words.effective if "effective" in publication.metadata else words.updated
    return said(day=day.isoformat())


def spanned(retrieval: Retrieval, cited: Sequence[LocatedQuote]) -> Sequence[UUID]:
    """The documents found by a question that spans several, where at least two and most of them are cited.

    "Which pens may be used?" spans pens: it is no fault of seven documents that they say nothing of them.
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
    """The sentence that names the compared documents of which nothing is cited; '' where all of them are."""
    quoted = {one.passage.publication.document_id for one in cited}
    called = {one.document: (one.title, "", one.file) for one in documents if one.document in compared}
    names = distinct_names(called)
    missing = [names[one] for one in compared if one in names and one not in quoted]
    return words.nothing_found_in(missing) if missing else ""
