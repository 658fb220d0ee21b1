"""Weekly quality metrics of a channel, computed from the records of its questions.

``bot.quality.targets`` holds their targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import fmean, median
from typing import Any

from bot.core.models import AnswerState
from bot.quality.targets import CHANNEL_TARGETS
from storage.chat.feedback import HANDOFFS, SETTLED, FeedbackVerdict
from storage.chat.traces import AnswerFacts, QuestionRecords
from storage.clock import utc_now

Json = dict[str, Any]

MAX_WEEKS = 12
# States with sources: sentences of a model, or quoted passages.
ANSWERED = {AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.PASSAGES}
# States without a search.
CHAT = {AnswerState.CHAT}

Facts = Sequence[AnswerFacts]


@dataclass(frozen=True, slots=True)
class QualityMetric:
    """A weekly metric."""

    label: str
    # ``share`` (0-1), ``s``, ``tokens``, or ``''`` for a count.
    unit: str
    # What it counts, for whoever reads the figure.
    meaning: str
    # Computes it over questions with a search; None: no data.
    compute: Callable[[Facts], float | None]


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None


def _share_of(*states: AnswerState) -> Callable[[Facts], float | None]:
    return lambda facts: _mean(one.state in states for one in facts)


def _thumbs_up_share(facts: Facts) -> float | None:
    return _mean(verdict == FeedbackVerdict.GOOD for one in facts for verdict in _ratings(one))


def _ratings(facts: AnswerFacts) -> list[str]:
    return [verdict for verdict, _ in facts.verdicts if verdict not in HANDOFFS]


def _opened(facts: Facts) -> float | None:
    """Return the share of answers with sources that had a source opened."""
    return _mean(
        any(one.opened.values()) for one in facts if one.opened is not None and one.state in ANSWERED
    )


def _seconds(facts: Facts) -> float | None:
    known = [one.milliseconds["total"] / 1000 for one in facts if "total" in one.milliseconds]
    return median(known) if known else None


def _gaps(facts: Facts) -> float:
    """Count the questions that nobody's document answered, or whose answer was disputed."""
    return sum(map(is_gap, facts))


def is_gap(one: AnswerFacts) -> bool:
    """True if a question got a plain no that nobody approved, or feedback that its answer is wrong."""
    verdicts = {verdict for verdict, _ in one.verdicts}
    is_unanswered = one.state == AnswerState.NOT_FOUND and not verdicts & SETTLED
    return is_unanswered or bool(verdicts - SETTLED)


def _tokens(facts: Facts) -> float | None:
    kinds = ("prompt", "completion")
    spent = ([count for kind in kinds if (count := one.tokens.get(kind)) is not None] for one in facts)
    return _mean(sum(counts) for counts in spent if counts)


# By name, in the order shown; with the number of questions they are the eight figures of a channel.
METRICS: dict[str, QualityMetric] = {
    "answered": QualityMetric(
        "Answered",
        "share",
        "Answers with sources; more is not better, since what your documents don’t say needs a no.",
        _share_of(*ANSWERED),
    ),
    "not_found": QualityMetric(
        "Plain no",
        "share",
        "Questions to which I found nothing in the documents, and said so.",
        _share_of(AnswerState.NOT_FOUND),
    ),
    "helpful": QualityMetric(
        "Thumbs up",
        "share",
        "Share of “Helpful” in all feedback, which most people don’t give.",
        _thumbs_up_share,
    ),
    "opened": QualityMetric(
        "Sources opened",
        "share",
        "Answers of which a person opened a source to check it.",
        _opened,
    ),
    "seconds": QualityMetric(
        "Seconds to an answer",
        "s",
        "Half of the questions were answered faster than this.",
        _seconds,
    ),
    "gaps": QualityMetric(
        "Gaps",
        "",
        "Questions with a plain no, or with a disputed answer: a document may be missing or wrong.",
        _gaps,
    ),
    "tokens": QualityMetric(
        "Tokens per answer",
        "tokens",
        "Pieces of words that language models read and wrote for an answer, on average.",
        _tokens,
    ),
}
QUESTIONS = QualityMetric(
    "Questions", "", "Questions that were searched for; greetings and commands don’t count.", len
)


@dataclass(frozen=True, slots=True)
class Week:
    """The metrics of one week of a channel."""

    # A Monday.
    begins: date
    questions: int
    figures: Mapping[str, float | None]
    # False if retention has deleted some or all of its records.
    is_whole: bool

    @property
    def is_kept(self) -> bool:
        """True if some of its records are left, or none was deleted."""
        return self.questions > 0 or self.is_whole


@dataclass(frozen=True, slots=True)
class ChannelQuality:
    """The quality metrics of a channel."""

    channel_id: int
    kept_since: datetime
    # Oldest first, without gaps, up to the current one.
    weeks: Sequence[Week]
    questions: int
    # Over all these weeks.
    figures: Mapping[str, float | None]
    # Stored metrics of an earlier period, for comparison.
    baseline: Mapping[str, float | None] | None

    def as_json(self, channel: str) -> Json:
        """Return the output of ``footnote quality --json``."""
        return {
            "channel": channel,
            "kept_since": self.kept_since.isoformat(timespec="seconds"),
            "questions": self.questions,
            "figures": dict(self.figures),
            "baseline": dict(self.baseline) if self.baseline else None,
            "targets": {name: [limit.sign, limit.value] for name, limit in CHANNEL_TARGETS.items()},
            "missed": sorted(name for name, value in self.figures.items() if is_missed(name, value)),
            "weeks": [
                {
                    "begins": week.begins.isoformat(),
                    "questions": week.questions,
                    "is_whole": week.is_whole,
                    "figures": dict(week.figures) if week.is_kept else None,
                }
                for week in self.weeks
            ],
        }


def is_missed(name: str, value: float | None) -> bool:
    """True if a metric is known and misses its target."""
    limit = CHANNEL_TARGETS.get(name)
    return limit is not None and value is not None and not limit.is_met(value)


def compute_metrics(facts: Facts) -> dict[str, float | None]:
    """Compute every metric over some questions."""
    return {name: metric.compute(facts) for name, metric in METRICS.items()}


def weeks_of(facts: Facts, kept_since: datetime, until: datetime, count: int) -> list[Week]:
    """Compute the metrics of the last ``count`` weeks, Monday to Sunday in UTC."""
    last = _monday(until)
    found = []
    for begins in (last - timedelta(weeks=back) for back in reversed(range(count))):
        asked = [one for one in facts if _monday(one.asked_at) == begins]
        is_whole = kept_since.date() < begins
        found.append(Week(begins, len(asked), compute_metrics(asked), is_whole))
    return found


def _monday(moment: datetime) -> date:
    return moment.date() - timedelta(days=moment.weekday())


async def channel_quality(
    records: QuestionRecords, channel_id: int, weeks: int = MAX_WEEKS
) -> ChannelQuality:
    """Return a channel's metrics of the last ``weeks``, as far back as records are retained.

    Raises:
        storage.errors.DatabaseUnavailable: the database is unavailable.
    """
    now = utc_now()
    since = now - timedelta(days=now.weekday(), weeks=weeks - 1)
    facts = await records.facts_since(channel_id, since.replace(hour=0, minute=0, second=0, microsecond=0))
    searched = [one for one in facts if one.state not in CHAT]
    return ChannelQuality(
        channel_id,
        records.kept_since,
        weeks_of(searched, records.kept_since, now, weeks),
        len(searched),
        compute_metrics(searched),
        await records.baseline(channel_id),
    )
