"""Measures of replies, each a share or a mean over the questions that it applies to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from bot.core.models import Language
from bot.core.wording import reply_words
from tools.evaluation.asking import Asked
from tools.evaluation.golden import Kind, Page, plain
from tools.evaluation.replies import Mark, Reply

_SAID = reply_words(Language.ENGLISH)
_EXCUSES = (_SAID.model_failed, _SAID.model_unusable, _SAID.model_unverified, _SAID.model_broke_off)
RESAMPLES = 5000
PROSE = {Kind.SINGLE, Kind.ACROSS, Kind.FOLLOWUP, Kind.NO_FIGURE}


@dataclass(frozen=True, slots=True)
class Result:
    """A question with its reply."""

    asked: Asked
    reply: Reply

    @property
    def kind(self) -> Kind:
        """Kind of the question."""
        return self.asked.golden.kind

    def hit(self, k: int) -> float:
        """Return the share of things asked that have an acceptable page among the first ``k`` (hit@k)."""
        return _met(self.asked.needs, self.reply.ranked[:k])

    @property
    def acceptable(self) -> frozenset[Page]:
        """Pages that answer any of the things asked."""
        return frozenset[Page]().union(*self.asked.needs)

    def reciprocal_rank(self) -> float:
        """Return 1 / rank of the first acceptable page; 0 if none was found."""
        ranks = (rank for rank, page in enumerate(self.reply.ranked, start=1) if page in self.acceptable)
        return 1 / next(ranks, float("inf"))

    def finds_document(self, k: int = 5) -> float:
        """Return ``hit`` at the level of documents: any page of an acceptable document counts."""
        needs = tuple(frozenset((file, 0) for file, _ in need) for need in self.asked.needs)
        return _met(needs, tuple((file, 0) for file, _ in self.reply.ranked[:k]))

    def cited_share(self) -> float:
        """Return the share of things asked for which an acceptable page was cited."""
        return _met(self.asked.needs, self.reply.cited)

    def contained(self) -> float:
        """Return the share of the correct answer's facts that are in the text or in a quote."""
        said = [plain(text) for text in (self.reply.text, *(mark.quote for mark in self.reply.marks))]
        facts = self.asked.golden.answer
        return fmean(any(plain(one) in text for one in fact for text in said) for fact in facts)


def share(values: Iterable[float]) -> float:
    """Return the mean; NaN without values."""
    known = list(values)
    return fmean(known) if known else float("nan")


def of_kinds(results: Sequence[Result], *kinds: Kind) -> list[Result]:
    """Return the results of these kinds, without misspelt questions, which only ``misspelt_loss`` counts."""
    return [one for one in results if one.kind in kinds and not one.asked.golden.twin]


def answerable(results: Sequence[Result]) -> list[Result]:
    """Return the prose questions that a document answers."""
    return of_kinds(results, *PROSE)


def sourced(results: Sequence[Result], *kinds: Kind) -> list[Result]:
    """Return the results of these kinds with sources: answers and passages."""
    return [one for one in of_kinds(results, *kinds) if one.reply.is_sourced]


def claimed_share(results: Sequence[Result], *kinds: Kind) -> float:
    """Return the share of questions of these kinds that the bot claims to answer."""
    return share(one.reply.is_claimed for one in of_kinds(results, *kinds))


def plain_no(results: Sequence[Result], *kinds: Kind) -> float:
    """Return the share of questions of these kinds that get a plain no."""
    return share(one.reply.state == "not_found" for one in of_kinds(results, *kinds))


def right_shown(results: Sequence[Result]) -> float:
    """Return the share of answerable questions whose reply shows an acceptable page."""
    return share(not one.acceptable.isdisjoint(one.reply.cited) for one in answerable(results))


def right_linked(results: Sequence[Result]) -> float:
    """Return the same share, including the page that a plain no links."""
    return share(not one.acceptable.isdisjoint(one.reply.offered) for one in answerable(results))


def first_right(results: Sequence[Result]) -> float:
    """Return the share of sourced answerable questions whose first citation is on an acceptable page."""
    return share(
        any(mark.page in one.acceptable for mark in one.reply.marks[:1]) for one in sourced(results, *PROSE)
    )


def citation_precision(results: Sequence[Result]) -> float:
    """Return the share of cited pages that are acceptable, for answerable questions."""
    return share(page in one.acceptable for one in sourced(results, *PROSE) for page in one.reply.cited)


def citation_recall(results: Sequence[Result]) -> float:
    """Return the share of things asked for which an acceptable page is cited, for sourced replies."""
    return share(one.cited_share() for one in sourced(results, *PROSE))


def answer_contained(results: Sequence[Result]) -> float:
    """Return the share of facts that are written or quoted, for sourced replies that need any."""
    return share(one.contained() for one in sourced(results, *PROSE) if one.asked.golden.answer)


def quotes_shown(results: Sequence[Result]) -> float:
    """Return the citations per sourced reply, for all kinds."""
    return share(len(one.reply.marks) for one in sourced(results, *Kind))


def characters(results: Sequence[Result]) -> float:
    """Return the characters per sourced reply, for all kinds."""
    return share(len(one.reply.text) for one in sourced(results, *Kind))


def steps_in_order(results: Sequence[Result]) -> float:
    """Return the share of claimed answers whose citations follow the order of their document.

    Counts answers with at least two citations, all of one document. Pages may not go back, nor may the tops
    of the quotes' first boxes within a page; a citation without a box counts by its page only. Pages are
    treated as one column: in two columns, a quote at the top of the second one comes before one at the bottom
    of the first.
    """
    marks = [one.reply.marks for one in of_kinds(results, *Kind) if one.reply.is_claimed]
    return share(
        _in_order(found) for found in marks if len(found) > 1 and len({m.page[0] for m in found}) == 1
    )


def _in_order(marks: Sequence[Mark]) -> bool:
    pages = [mark.page for mark in marks]
    places = [(mark.page, mark.boxes[0][1]) for mark in marks if mark.boxes]
    return pages == sorted(pages) and places == sorted(places)


def misspelt_loss(results: Sequence[Result]) -> float:
    """Return hit@5 of correctly spelt questions minus that of their misspelt twins, over pairs."""
    spelt = {one.asked.golden.id: one for one in results}
    pairs = [(spelt[one.asked.golden.twin], one) for one in results if one.asked.golden.twin in spelt]
    return share(right.hit(5) - wrong.hit(5) for right, wrong in pairs)


def fallback_share(results: Sequence[Result]) -> float:
    """Return the share of replies in which quotes replaced a failed model, which is not measured there."""
    return share(any(words in one.reply.text for words in _EXCUSES) for one in of_kinds(results, *Kind))


def figure_precision(results: Sequence[Result]) -> float:
    """Return the share of shown figures that are right, for questions that ask for one."""
    return share(
        page in one.asked.golden.figures
        for one in of_kinds(results, Kind.FIGURE)
        for page in one.reply.figures
    )


def figure_recall(results: Sequence[Result]) -> float:
    """Return the share of questions for a figure that got a right one."""
    asked = of_kinds(results, Kind.FIGURE)
    return share(bool(one.asked.golden.figures & set(one.reply.figures)) for one in asked)


def unasked_figures(results: Sequence[Result]) -> float:
    """Return the share of prose questions on illustrated pages that got a figure anyway."""
    return share(bool(one.reply.figures) for one in of_kinds(results, Kind.NO_FIGURE))


def spent(results: Sequence[Result]) -> tuple[float, float]:
    """Return median and 95th percentile of milliseconds per question."""
    times = [one.reply.milliseconds for one in of_kinds(results, *Kind)]
    return median(times), quantiles(times, n=20)[-1]


def removed_misses(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return (share of their misses removed, bounds of its 95 % interval), by paired bootstrap.

    Efron, "Bootstrap Methods" (1979). ``ours[i]`` and ``theirs[i]`` are hits of the same question.
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

# Measures of a search.
RANKING: dict[str, Measure] = {
    "page hit@1": lambda results: share(one.hit(1) for one in answerable(results)),
    "page hit@3": lambda results: share(one.hit(3) for one in answerable(results)),
    "page hit@5": lambda results: share(one.hit(5) for one in answerable(results)),
    "page hit@5, single": lambda results: share(one.hit(5) for one in of_kinds(results, Kind.SINGLE)),
    "page hit@5, across": lambda results: share(one.hit(5) for one in of_kinds(results, Kind.ACROSS)),
    "page hit@5, follow-up": lambda results: share(one.hit(5) for one in of_kinds(results, Kind.FOLLOWUP)),
    "document hit@5": lambda results: share(one.finds_document() for one in answerable(results)),
    "MRR": lambda results: share(one.reciprocal_rank() for one in answerable(results)),
}

# Measures of answers.
ANSWERS: dict[str, Measure] = {
    "answerable claimed": lambda results: claimed_share(results, *PROSE),
    "off subject claimed": lambda results: claimed_share(results, Kind.OFF_SUBJECT),
    "absent here claimed": lambda results: claimed_share(results, Kind.ABSENT_HERE),
    "off subject, plain no": lambda results: plain_no(results, Kind.OFF_SUBJECT),
    "absent here, plain no": lambda results: plain_no(results, Kind.ABSENT_HERE),
    "answerable, right page shown": right_shown,
    "answerable, right page shown or linked": right_linked,
    "first citation on a right page": first_right,
    "citation page precision": citation_precision,
    "citation page recall": citation_recall,
    "answer contained": answer_contained,
    "quotes a reply": quotes_shown,
    "characters a reply": characters,
    "steps in page order": steps_in_order,
    "misspelt: hit@5 lost": misspelt_loss,
    "a model's place taken by quotes": fallback_share,
    "figures shown, right": figure_precision,
    "figures asked for, shown": figure_recall,
    "figures nobody asked for": unasked_figures,
}
