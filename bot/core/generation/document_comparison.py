"""What several documents say on one question: each quoted under its name, and where they differ, that.

Documents that a question names beside one another are searched one by one, so that none crowds out another;
one that says nothing on it is named. Where nobody asked for several, and they give other values for what was
asked, as two offices do for an allowance, each is quoted, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, zip_longest
from uuid import UUID

from bot.core.citations.source_buttons import distinct_names
from bot.core.generation.extractive import QuoteCandidate, is_twin, without_labels
from bot.core.generation.judge import Judge, Verdict
from bot.core.models import AnalyzedQuestion, LocatedQuote, Passage, Question, Retrieval
from bot.core.ports import Retriever
from bot.core.retrieval.ranking import day_of
from bot.core.understanding.answer_types import RequiredAnswer, spans_documents
from bot.core.understanding.channel_documents import edition
from bot.core.verification.claims import VerifiedClaim
from bot.core.verification.dates import Mention, find_dates
from bot.core.verification.facts import find_quantities, find_spelled
from bot.core.wording import ReplyWords
from storage.models import DocumentStatus, LivePublication
from storage.task_group import gather_or_cancel

MAX_DIFFERING = 7
"""Most documents that are quoted for saying different things."""


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
    """The verdict on each document by itself; arguments as of ``Judge.verdict``.

    Titles and headings are left out: they hold the name that the question gives, and are near for that alone.
    """
    said = without_labels(ranked)
    return {
        document: judge.verdict(
            question,
            [one for one in passages if one.publication.document_id == document],
            [one for one in said if one.document == document],
        )
        for document in documents
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Quotes of several documents."""

    quotes: Sequence[QuoteCandidate]
    is_differing: bool = False
    """They give different values for what was asked, and stand in the order of their documents' days."""


def compare(
    question: AnalyzedQuestion,
    chosen: Sequence[QuoteCandidate],
    ranked: Sequence[QuoteCandidate],
    answering: Sequence[UUID] = (),
) -> Comparison:
    """What is quoted of several documents.

    Args:
        question: as it was searched for.
        chosen: what would be quoted, whatever document it is of.
        ranked: everything that may be quoted, best first.
        answering: the documents that were named, and that answer, in their order.
    """
    best = _best_of_each(ranked)
    if answering:
        return Comparison([best[one] for one in answering if one in best] or chosen)
    if spans_documents(question.text):
        return Comparison(chosen)
    first = max(chosen, key=lambda one: one.score)
    near = [one for one in best.values() if is_twin(one, [first])]
    values = [(one, _values(question.text, one.unit.text)) for one in [first, *near]]
    comparable = [(one, held) for one, held in values if held.keys() & values[0][1].keys()]
    if not any(_differ(values[0][1], held) for _, held in comparable[1:]):
        return Comparison(chosen)
    newest_first = sorted(comparable[:MAX_DIFFERING], key=lambda pair: _day(pair[0]), reverse=True)
    return Comparison([one for one, _ in newest_first], is_differing=True)


def _best_of_each(ranked: Sequence[QuoteCandidate]) -> dict[UUID, QuoteCandidate]:
    best: dict[UUID, QuoteCandidate] = {}
    for one in without_labels(ranked):
        best.setdefault(one.document, one)
    return best


def _day(one: QuoteCandidate) -> date:
    return day_of(one.item.passage.publication) or date.min


_Values = Mapping[str, Sequence[frozenset[str] | Mention]]
"""Unit -> the numbers in it, each as what it may mean; under "day" dates."""


def _values(question: str, text: str) -> _Values:
    """What a text gives for what is asked; of one that asks for no kind of value, numbers with a unit."""
    required = RequiredAnswer(question)
    if not required.is_held_by(text):
        return {}
    parts = required.parts_held(text) if required else [text]
    found: dict[str, list[frozenset[str] | Mention]] = {}
    for part in parts:
        rest = part
        for one in find_dates(part) if required else ():
            found.setdefault("day", []).append(one)
            rest = rest.replace(one.text, " ")
        for number in (*find_quantities(rest), *find_spelled(rest)):
            if number.unit or required:
                found.setdefault(number.unit or "", []).append(number.values)
    return found


def _differ(some: _Values, others: _Values) -> bool:
    """Whether in some unit both give values, and none in common."""
    return any(
        not any(_is_same(one, other) for one in some[unit] for other in others[unit])
        for unit in some.keys() & others.keys()
    )


def _is_same(one: frozenset[str] | Mention, other: frozenset[str] | Mention) -> bool:
    if isinstance(one, Mention) or isinstance(other, Mention):
        return isinstance(one, Mention) and isinstance(other, Mention) and one.agrees(other)
    return not one.isdisjoint(other)


def under_names(claims: Sequence[VerifiedClaim], words: ReplyWords, *, is_dated: bool) -> list[VerifiedClaim]:
    """Quotes, each behind the name of its document, and its day where that decides what counts."""
    publications = [claim.quotes[0].passage.publication for claim in claims]
    names = distinct_names({one.document_id: (one.title, edition(one), one.file) for one in publications})
    return [
        replace(
            claim,
            text=words.quote_of(document=_called(names, one, words, is_dated=is_dated), quote=claim.text),
        )
        for claim, one in zip(claims, publications, strict=True)
    ]


def _called(
    names: Mapping[UUID, str], publication: LivePublication, words: ReplyWords, *, is_dated: bool
) -> str:
    name, day = names[publication.document_id], day_of(publication) if is_dated else None
    if day is None:
        return name
    said = words.effective if "effective" in publication.metadata else words.updated
    return f"{name} ({said(day=day.isoformat())})"


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
    missing = [
        words.document_named(title=names[one]) for one in compared if one in names and one not in quoted
    ]
    return words.nothing_in(documents=", ".join(missing)) if missing else ""
