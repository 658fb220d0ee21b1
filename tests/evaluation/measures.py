"""What a set of replies is worth, each measure a share or a mean over the questions it applies to."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from evaluation.asking import Asked
from evaluation.golden import Kind, Page, plain
from evaluation.replies import Reply

from bot.core.models import Language
from bot.core.wording import reply_words

_SAID = reply_words(Language.ENGLISH)
_EXCUSES = (_SAID.model_failed, _SAID.model_unusable, _SAID.model_unverified, _SAID.model_broke_off)
RESAMPLES = 5000
PROSE = {Kind.SINGLE, Kind.ACROSS, Kind.FOLLOWUP, Kind.NO_FIGURE}


@dataclass(frozen=True, slots=True)
class Result:
    """One question and its reply."""

    asked: Asked
    reply: Reply

    @property
    def kind(self) -> Kind:
        """Of the question."""
        return self.asked.golden.kind

    def hit(self, k: int) -> float:
        """Share of the things asked of which an acceptable page is among the first ``k``."""
        return _met(self.asked.needs, self.reply.ranked[:k])

    def reciprocal_rank(self) -> float:
        """1 / rank of the first acceptable page; 0 when none was found."""
        wanted = frozenset[Page]().union(*self.asked.needs)
        ranks = (rank for rank, page in enumerate(self.reply.ranked, start=1) if page in wanted)
        return 1 / next(ranks, float("inf"))

    def finds_document(self, k: int = 5) -> float:
        """As ``hit``, when any page of the right documents counts."""
        needs = tuple(frozenset((file, 0) for file, _ in need) for need in self.asked.needs)
        return _met(needs, tuple((file, 0) for file, _ in self.reply.ranked[:k]))

    def cited_share(self) -> float:
        """Share of the things asked that an acceptable page was cited for."""
        return _met(self.asked.needs, self.reply.cited)

    def contained(self) -> float:
        """Share of the facts of a right answer that the reply says."""
        said = plain(self.reply.text)
        facts = self.asked.golden.answer
        return fmean(any(plain(one) in said for one in fact) for fact in facts)


def share(values: Iterable[float]) -> float:
    """Mean; nan of nothing."""
    known = list(values)
    return fmean(known) if known else float("nan")


def of_kinds(results: Sequence[Result], kinds: Container[Kind]) -> list[Result]:
    """Questions of these kinds; without the misspelt, which would count theirs twice."""
    return [one for one in results if one.kind in kinds and not one.asked.golden.twin]


def answerable(results: Sequence[Result]) -> list[Result]:
    """Prose questions that a document answers."""
    return of_kinds(results, PROSE)


def citation_precision(results: Sequence[Result]) -> float:
    """Share of all cited pages that answer; of prose questions that have an answer."""
    judged = [
        page in frozenset[Page]().union(*one.asked.needs)
        for one in answerable(results)
        for page in one.reply.cited
    ]
    return share(judged)


def refused(results: Sequence[Result], *kinds: Kind) -> float:
    """Share of the questions of these kinds that were refused."""
    return share(one.reply.is_refused for one in of_kinds(results, kinds))


def stood_in(results: Sequence[Result]) -> float:
    """Share of the replies in which quotes stand in for a model that failed: it is not measured there."""
    return share(any(words in one.reply.text for words in _EXCUSES) for one in results)


def figure_precision(results: Sequence[Result]) -> float:
    """Share of the figures shown to those who asked for one that are the right ones."""
    shown = [
        page in one.asked.golden.figures
        for one in results
        if one.kind is Kind.FIGURE
        for page in one.reply.figures
    ]
    return share(shown)


def figure_recall(results: Sequence[Result]) -> float:
    """Share of the questions for a figure that got one of the right ones."""
    return share(
        bool(one.asked.golden.figures & set(one.reply.figures)) for one in results if one.kind is Kind.FIGURE
    )


def unasked_figures(results: Sequence[Result]) -> float:
    """Share of the prose questions on illustrated pages that got a figure all the same."""
    return share(bool(one.reply.figures) for one in results if one.kind is Kind.NO_FIGURE)


def spent(results: Sequence[Result]) -> tuple[float, float]:
    """Milliseconds per question: (median, 95th of a hundred)."""
    times = [one.reply.milliseconds for one in results]
    return median(times), quantiles(times, n=20)[-1]


def removed_misses(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """(share of their misses removed, lower and upper bound at 95 %), by paired bootstrap over questions.

    Efron, "Bootstrap Methods" (1979); ``ours[i]`` and ``theirs[i]`` are hits of the same question.
    """
    chance = random.Random(20261122)
    pairs = list(zip(ours, theirs, strict=True))
    drawn = sorted(_removed(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return _removed(pairs), drawn[RESAMPLES // 40], drawn[-RESAMPLES // 40]


def _removed(pairs: Sequence[tuple[float, float]]) -> float:
    missed = sum(1 - theirs for _, theirs in pairs)
    return sum(ours - theirs for ours, theirs in pairs) / missed if missed else 0.0


def _met(needs: Sequence[frozenset[Page]], pages: Sequence[Page]) -> float:
    return share(not need.isdisjoint(pages) for need in needs)


Measure = Callable[[Sequence[Result]], float]

RANKING: dict[str, Measure] = {
    "page hit@1": lambda results: share(one.hit(1) for one in answerable(results)),
    "page hit@3": lambda results: share(one.hit(3) for one in answerable(results)),
    "page hit@5": lambda results: share(one.hit(5) for one in answerable(results)),
    "page hit@5, single": lambda results: share(one.hit(5) for one in of_kinds(results, {Kind.SINGLE})),
    "page hit@5, across": lambda results: share(one.hit(5) for one in results if one.kind is Kind.ACROSS),
    "page hit@5, follow-up": lambda results: share(
        one.hit(5) for one in results if one.kind is Kind.FOLLOWUP
    ),
    "document hit@5": lambda results: share(one.finds_document() for one in answerable(results)),
    "MRR": lambda results: share(one.reciprocal_rank() for one in answerable(results)),
}
"""What a search alone is measured by."""

ANSWERS: dict[str, Measure] = {
    "citation page precision": citation_precision,
    "citation page recall": lambda results: share(one.cited_share() for one in answerable(results)),
    "answer contained": lambda results: share(
        one.contained() for one in answerable(results) if one.asked.golden.answer
    ),
    "answerable refused": lambda results: refused(results, *PROSE),
    "off subject refused": lambda results: refused(results, Kind.OFF_SUBJECT),
    "absent here refused": lambda results: refused(results, Kind.ABSENT_HERE),
    "a model's place taken by quotes": stood_in,
    "figures shown, right": figure_precision,
    "figures asked for, shown": figure_recall,
    "figures nobody asked for": unasked_figures,
}
"""What an answer is measured by."""
