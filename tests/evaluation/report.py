"""The tables of an evaluation, and the bars that its test half is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.baselines import NAMES as BASELINES
from evaluation.highlights import Highlights
from evaluation.measures import (
    ANSWERS,
    PROSE,
    RANKING,
    Result,
    answerable,
    refused,
    removed_misses,
    share,
    spent,
)

Results = Mapping[str, Sequence[Result]]
"""What was asked -> the results of all questions, in one order."""

BARS = {
    "citation page precision": 0.80,
    "citation page recall": 0.75,
    "off subject refused": 0.90,
    "absent here refused": 0.45,
}
"""Measure -> share that quotes must reach."""
BARS_OF_MODELS = {"off subject refused": 0.95, "absent here refused": 0.70}
"""The same for models."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that is asked of the test half."""

    what: str
    bar: str
    measured: str
    is_met: bool


def searching_rows(results: Results) -> list[Sequence[str]]:
    """How pages are found, by us and by every baseline."""
    measured = [
        (what, *(f"{measure(found):.3f}" for found in results.values())) for what, measure in RANKING.items()
    ]
    return [("pages found", *results), *measured]


def rows(results: Results) -> list[Sequence[str]]:
    """How questions are answered, by every engine."""
    ours = {name: found for name, found in results.items() if name not in BASELINES}
    measured = [
        (what, *(f"{measure(found):.3f}" for found in ours.values())) for what, measure in ANSWERS.items()
    ]
    times = [spent(found) for found in ours.values()]
    return [
        ("answers", *ours),
        *measured,
        ("milliseconds, median", *(f"{middle:.0f}" for middle, _ in times)),
        ("milliseconds, 95 of 100", *(f"{most:.0f}" for _, most in times)),
    ]


def misses(results: Sequence[Result]) -> list[str]:
    """Answerable questions whose page is not among the first five, the worst first."""
    missed = sorted(answerable(results), key=lambda one: (one.hit(5), one.hit(20), one.reciprocal_rank()))
    return [_told(one) for one in missed if one.hit(5) < 1]


def _told(result: Result) -> str:
    wanted = [sorted(need)[:3] for need in result.asked.needs]
    found = ", ".join(f"{file} {page}" for file, page in result.reply.ranked[:5])
    return f"{result.asked.golden.id} {result.asked.golden.text!r}\n    wanted {wanted}\n    found {found}"


def bars(name: str, ours: Sequence[Result], marked: Highlights, least: Mapping[str, float]) -> list[Bar]:
    """What is asked of one answerer in whole collections; ``least``: its own share of each measure."""
    return [
        *(_at_least(f"{name}: {what}", ANSWERS[what](ours), bar) for what, bar in least.items()),
        _at_most(f"{name}: answerable refused", refused(ours, *PROSE), 0.05),
        _at_least(f"{name}: quoted words marked (of {marked.words})", marked.share, 0.98),
        _at_most(f"{name}: marks in a wrong place (of {marked.citations})", marked.misplaced, 0),
    ]


def removing(name: str, results: Results) -> Bar:
    """How many misses of the baseline that finds most are none of ours."""
    hits = {one: [each.hit(5) for each in answerable(found)] for one, found in results.items()}
    best = max(BASELINES, key=lambda one: share(hits[one]))
    removed, low, high = removed_misses(hits[name], hits[best])
    return Bar(
        f"{name}: misses at 5 of {best} ({1 - share(hits[best]):.3f}) removed",
        ">= 1/3, lower bound > 0",
        f"{removed:.2f} ({low:.2f} to {high:.2f})",
        removed >= 1 / 3 and low > 0,
    )


def _at_least(what: str, value: float, bar: float) -> Bar:
    return Bar(what, f">= {bar:g}", f"{value:.3f}", value >= bar)


def _at_most(what: str, value: float, bar: float) -> Bar:
    return Bar(what, f"<= {bar:g}", f"{value:.3f}", value <= bar)
