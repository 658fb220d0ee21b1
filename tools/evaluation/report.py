"""Tables of an evaluation, and the bars of its test half."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bot.quality.targets import FIGURE_TARGETS, MARKED_WORDS, MISPLACED_MARKS, Limit
from tools.evaluation.baselines import NAMES as BASELINES
from tools.evaluation.golden import Page
from tools.evaluation.highlights import Highlights
from tools.evaluation.measures import (
    ANSWERS,
    RANKING,
    Result,
    answerable,
    removed_misses,
    share,
    spent,
)

# Answerer or baseline -> results of all questions, in the same order.
Results = Mapping[str, Sequence[Result]]

_SEED = 20261122


@dataclass(frozen=True, slots=True)
class Bar:
    """A requirement of the test half."""

    what: str
    bar: str
    measured: str
    is_met: bool


def searching_rows(results: Results) -> list[Sequence[str]]:
    """Return the table of search measures, for us and every baseline."""
    measured = [
        (what, *(f"{measure(found):.3f}" for found in results.values())) for what, measure in RANKING.items()
    ]
    return [("pages found", *results), *measured]


def rows(results: Results) -> list[Sequence[str]]:
    """Return the table of answer measures, for every engine."""
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
    """Return answerable questions without a right page among the first five, worst first."""
    missed = sorted(answerable(results), key=lambda one: (one.hit(5), one.hit(20), one.reciprocal_rank()))
    return [_told(one) for one in missed if one.hit(5) < 1]


def _told(result: Result) -> str:
    wanted = [sorted(need)[:3] for need in result.asked.needs]
    found = _named(result.reply.ranked[:5])
    return f"{result.asked.golden.id} {result.asked.golden.text!r}\n    wanted {wanted}\n    found {found}"


def sampled_replies(results: Sequence[Result], most: int) -> list[str]:
    """Return up to ``most`` replies for a person to read, in a reproducible random choice."""
    chosen = random.Random(_SEED).sample(results, min(most, len(results)))
    return [_written(one) for one in chosen]


def _written(result: Result) -> str:
    golden, reply = result.asked.golden, result.reply
    return "\n".join(
        [
            f"\n{golden.id} ({golden.kind}, {reply.state}) {golden.text!r}",
            *(f"    asked after {turn!r}" for turn, _ in golden.history),
            *(f"    | {line}" for line in reply.text.splitlines()),
            f"    cited {_named(reply.cited)}",
            *([f"    nearest {_named([reply.nearest])}"] if reply.nearest else []),
            *(f"    acceptable {_named(sorted(need))}" for need in result.asked.needs),
        ]
    )


def _named(pages: Iterable[Page]) -> str:
    return ", ".join(f"{file} {page}" for file, page in pages) or "nothing"


def bars(name: str, ours: Sequence[Result], marked: Highlights, limits: Mapping[str, Limit]) -> list[Bar]:
    """Return the bars of one answerer in whole collections; ``limits``: by measure.

    A bar that cannot be measured, because no reply applies, is missed.
    """
    return [
        *(_held(f"{name}: {what}", ANSWERS[what](ours), limit) for what, limit in limits.items()),
        *(_held(f"{name}: {what}", value, limit) for what, value, limit in _figures(ours)),
        _held(f"{name}: quoted words marked (of {marked.words})", marked.share, MARKED_WORDS),
        _held(f"{name}: marks in a wrong place (of {marked.citations})", marked.misplaced, MISPLACED_MARKS),
    ]


def _figures(results: Sequence[Result]) -> Iterator[tuple[str, float, Limit]]:
    """Yield (label, value, bar) of the quality figures of a channel, computed for these questions.

    Figures that only a running service can measure, like the time to the first words, are left out.
    """
    replies = [one.reply for one in answerable(results)]
    ranked = [one.ranked[:5] for one in replies if one.ranked]
    found: dict[str, list[float]] = {
        "documents in the top five": [len({file for file, _ in five}) for five in ranked],
        "figures on a cited page": [page in one.cited for one in replies for page in one.figures],
        "seconds to an answer": [median(one.milliseconds for one in replies) / 1000] if replies else [],
    }
    for name, limit in FIGURE_TARGETS.items():
        if found[name]:
            yield f"figure: {name}", fmean(found[name]), limit


def removing(name: str, results: Results) -> Bar:
    """Return the bar for the share of the best baseline's misses that we avoid."""
    hits = {one: [each.hit(5) for each in answerable(found)] for one, found in results.items()}
    best = max(BASELINES, key=lambda one: share(hits[one]))
    removed, low, high = removed_misses(hits[name], hits[best])
    return Bar(
        f"{name}: misses at 5 of {best} ({1 - share(hits[best]):.3f}) removed",
        ">= 1/3, lower bound > 0",
        f"{removed:.2f} ({low:.2f} to {high:.2f})",
        removed >= 1 / 3 and low > 0,
    )


def _held(what: str, value: float, limit: Limit) -> Bar:
    return Bar(what, str(limit), f"{value:.3f}", limit.is_met(value))
