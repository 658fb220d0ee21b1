"""Passages with different values for what was asked: numbers, dates and amounts, compared per unit.

Twin sentences in other documents, such as those of two offices, may give different values. A document that
gives two values for one thing, on two pages, contradicts itself; but only if nothing suggests that the two
sentences are about different things, because a false alarm is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from functools import cached_property
from itertools import takewhile
from uuid import UUID

from bot.answers.generation.quote_selection import (
    MARGINS,
    TWIN_SHARE,
    QuoteCandidate,
    is_twin,
    without_labels,
)
from bot.answers.retrieval.ranking import document_date
from bot.answers.understanding.answer_types import RequiredAnswer, spans_documents, wants_steps
from bot.answers.understanding.question_terms import FUNCTION_TERMS, QuestionTerms, exact_words
from bot.answers.verification.dates import Mention, find_dates, find_frequencies
from bot.answers.verification.facts import Quantity, find_quantities, find_spelled
from bot.core.models import AnalyzedQuestion
from storage.text.analyzer import analyze
from storage.text.sentences import LIST_MARKER

# Maximum quotes shown with different values.
MAX_DIFFERING = 7

_DAY = "day"
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_LIST_ITEM = re.compile(rf"^\s*{LIST_MARKER}", re.MULTILINE)

# Unit -> its numbers; dates are under ``_DAY``.
_Values = Mapping[str, Sequence[Quantity | Mention]]


class ValueDifferences:
    """Compares the values that passages give for one question."""

    def __init__(self, question: AnalyzedQuestion) -> None:
        self._question = question
        self._required = RequiredAnswer(question.text)

    def find(
        self, first: QuoteCandidate, ranked: Sequence[QuoteCandidate], claim: str | None = None
    ) -> Sequence[QuoteCandidate]:
        """Return a quote and those that give other values; none if there are no such quotes.

        Quotes of other documents include those that agree, newest first.

        Args:
            first: the quote.
            ranked: quotable parts, best first.
            claim: what was written about the quote: only values that it repeats are compared; None: all.
        """
        if spans_documents(self._question.text) or wants_steps(self._question.text):
            return ()
        values = self._values(first.unit.text)
        if claim is not None:
            values = _in_common(values, self._values(claim))
        if not values:
            return ()
        return self._in_other_documents(first, values, ranked) or self._on_other_pages(first, values, ranked)

    def _in_other_documents(
        self, first: QuoteCandidate, values: _Values, ranked: Sequence[QuoteCandidate]
    ) -> Sequence[QuoteCandidate]:
        """Return the best quote of each document that says the same, if one gives another value."""
        best = best_of_each(ranked)
        least = max(one.score for one in best.values()) - MARGINS.other_document
        twins = [one for one in best.values() if is_twin(one, [first])]
        if self._required:
            near = takewhile(lambda one: one.score >= ranked[0].score - MARGINS.other_value, ranked)
            holding = best_of_each([one for one in near if self._values(one.unit.text).keys() & values])
            twins += [one for one in holding.values() if one not in twins and self._is_alike(first, one)]
        if first.score < least or not any(one.score >= least for one in twins):
            return ()
        given = [(one, held) for one in twins if (held := self._values(one.unit.text)).keys() & values]
        if not any(_differ(values, held) for _, held in given):
            return ()
        quotes = [first, *(one for one, _ in given)][:MAX_DIFFERING]
        return sorted(
            quotes, key=lambda one: document_date(one.item.passage.publication) or date.min, reverse=True
        )

    def _on_other_pages(
        self, first: QuoteCandidate, values: _Values, ranked: Sequence[QuoteCandidate]
    ) -> Sequence[QuoteCandidate]:
        """Return sentences of the same document that give different values for the same thing."""
        statements, said = [_Statement(first, values)], without_labels(ranked)
        for one in takewhile(lambda one: one.score >= said[0].score - MARGINS.other_value, said):
            if len(statements) == MAX_DIFFERING or not _is_beside(first, one):
                continue
            other = _Statement(one, self._values(one.unit.text))
            if self._asked_in(first) <= self._asked_in(one) and all(map(other.contradicts, statements)):
                statements.append(other)
        return [one.candidate for one in statements] if len(statements) > 1 else ()

    @cached_property
    def _asked(self) -> Set[str]:
        return QuestionTerms(self._question).weights.keys()

    def _is_alike(self, first: QuoteCandidate, other: QuoteCandidate) -> bool:
        """True if both documents are dated and the other covers the same question terms, in any wording."""
        publications = [one.item.passage.publication for one in (first, other)]
        is_dated = first.document != other.document and all(map(document_date, publications))
        said = [self._asked_under(one) for one in (first, other)]
        return is_dated and bool(said[0]) and said[0] <= said[1]

    def _asked_under(self, one: QuoteCandidate) -> Set[str]:
        return self._asked & set(analyze(" ".join((*one.section, one.unit.text))))

    def _asked_in(self, one: QuoteCandidate) -> Set[str]:
        return self._asked & set(analyze(one.unit.text))

    def _values(self, text: str) -> _Values:
        """Return a text's values for what is asked; if no kind is required, all numbers with a unit."""
        if not self._required.is_held_by(text):
            return {}
        parts = self._required.parts_held(text) if self._required else [text]
        found: dict[str, list[Quantity | Mention]] = {}
        for part in parts:
            rest = part
            for one in find_dates(part) if self._required else ():
                found.setdefault(_DAY, []).append(one)
                rest = rest.replace(one.text, " ")
            for number in (*find_quantities(rest), *find_spelled(rest)):
                if number.unit or self._required:
                    found.setdefault(number.unit or "", []).append(number)
        return found


def best_of_each(ranked: Sequence[QuoteCandidate]) -> dict[UUID, QuoteCandidate]:
    """Return each document's best quote."""
    best: dict[UUID, QuoteCandidate] = {}
    for one in without_labels(ranked):
        best.setdefault(one.document, one)
    return best


def _is_beside(one: QuoteCandidate, other: QuoteCandidate) -> bool:
    """True if both are sentences under the same heading, on two pages of one document.

    Rows and list items have their subject elsewhere.
    """
    if one.document != other.document or one.page == other.page:
        return False
    headings = [set(analyze(" ".join(each.section[-1:]))) for each in (one, other)]
    is_bare = any(
        each.unit.is_row or each.unit.lead or _LIST_ITEM.search(each.unit.text) for each in (one, other)
    )
    return headings[0] == headings[1] and not is_bare


class _Statement:
    """A sentence with the values that it gives."""

    def __init__(self, candidate: QuoteCandidate, values: _Values) -> None:
        self.candidate = candidate
        self._text = candidate.unit.text
        self._values = values

    def contradicts(self, other: _Statement) -> bool:
        """True if it gives another value for the same thing.

        The words before the value are the same, or those of one include the other's and few more. If each has
        different names, frequencies or years, they are about different things.
        """
        unit = next((one for one in self._values if _differ_in(one, self._values, other._values)), None)
        if unit is None:
            return False
        mine, others = self._subject(unit), other._subject(unit)
        is_same = len(mine & others) >= TWIN_SHARE * len(mine | others) and bool(mine and others)
        scopes = zip(self._scopes(unit), other._scopes(unit), strict=True)
        return is_same and _is_part(mine, others) and all(_is_part(*pair) for pair in scopes)

    def _subject(self, unit: str) -> Set[str]:
        """Return the terms before its value in a unit."""
        at = min(self._text.find(value.text) for value in self._values[unit])
        return set(analyze(self._text[: max(at, 0)])) - FUNCTION_TERMS

    def _scopes(self, unit: str) -> Iterator[Set[object]]:
        yield {word for word in exact_words(self._text) if not any(map(str.isdigit, word))}
        yield {(one.count, one.unit) for one in find_frequencies(self._text)}
        yield set() if unit == _DAY else set(_YEAR.findall(self._text))


def _is_part(some: Set[object], others: Set[object]) -> bool:
    return some <= others or others <= some


def _differ(some: _Values, others: _Values) -> bool:
    """True if both give values in some unit, but none in common."""
    return any(_differ_in(unit, some, others) for unit in some.keys() & others.keys())


def _differ_in(unit: str, some: _Values, others: _Values) -> bool:
    values, more = some.get(unit, ()), others.get(unit, ())
    return bool(values and more) and not any(_is_same(one, other) for one in values for other in more)


def _in_common(some: _Values, others: _Values) -> _Values:
    """Return the values that both texts give."""
    shared = {
        unit: [one for one in some[unit] if any(_is_same(one, other) for other in others[unit])]
        for unit in some.keys() & others.keys()
    }
    return {unit: values for unit, values in shared.items() if values}


def _is_same(one: Quantity | Mention, other: Quantity | Mention) -> bool:
    if isinstance(one, Mention) or isinstance(other, Mention):
        return isinstance(one, Mention) and isinstance(other, Mention) and one.agrees(other)
    return not one.values.isdisjoint(other.values)
