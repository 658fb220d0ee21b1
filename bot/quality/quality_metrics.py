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
from bot.quality.targets import FIGURE_TARGETS
from storage.chat.feedback import FeedbackVerdict
from storage.chat.traces import AnswerFacts, QuestionRecords
from storage.clock import utc_now

Json = dict[str, Any]

MAX_WEEKS = 12
# A document is recent if its date is at most this long before the question.
RECENT_DAYS = 365

ANSWERED = {AnswerState.GROUNDED, AnswerState.PARTIAL}
WITH_SOURCES = {*ANSWERED, AnswerState.PASSAGES}
# States without a search.
CHAT = {AnswerState.CHAT}

Facts = Sequence[AnswerFacts]


@dataclass(frozen=True, slots=True)
class QualityMetric:
    """A weekly metric."""

    label: str
    # ``share`` (0-1), ``ms``, ``tokens``, or ``''`` for a plain number.
    unit: str
    # Computes it over questions with a search; None: no data.
    compute: Callable[[Facts], float | None]


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


def _share_of(*states: AnswerState) -> Callable[[Facts], float | None]:
    return lambda facts: _mean(one.state in states for one in facts)


def _documents(facts: Facts) -> float | None:
    """Return the mean number of distinct documents among the top five candidates."""
    return _mean(len({found["file"] for found in one.top_sources}) for one in facts if one.top_sources)


def _recent(facts: Facts) -> float | None:
    """Return the share of recent documents among the dated ones of the top five candidates."""
    return _mean(
        date.fromisoformat(day) >= one.asked_at.date() - timedelta(days=RECENT_DAYS)
        for one in facts
        for day in {found["file"]: found["day"] for found in one.top_sources}.values()
        if day
    )


def _figures(facts: Facts) -> float | None:
    """Return the mean number of figures per answer with sources."""
    return _mean(len(one.figures) for one in facts if one.state in WITH_SOURCES)


def _figures_on_cited_pages(facts: Facts) -> float | None:
    """Return the share of the shown figures that are on a page cited by their answer."""
    return _mean(
        (figure["file"], figure["page"]) in {(cited["file"], cited["page"]) for cited in one.citations}
        for one in facts
        for figure in one.figures
    )


def _thumbs_up_share(facts: Facts) -> float | None:
    return _mean(verdict == FeedbackVerdict.GOOD for one in facts for verdict, _ in one.verdicts)


def _disputed_share(facts: Facts) -> float | None:
    return _mean(any(verdict != FeedbackVerdict.GOOD for verdict, _ in one.verdicts) for one in facts)


def _corrected(facts: Facts) -> float:
    """Count the feedback that named the right page."""
    return sum(page > 0 for one in facts for _, page in one.verdicts)


def _opened(facts: Facts) -> float | None:
    """Return the share of answers with sources that had a source opened."""
    return _mean(
        any(one.opened.values()) for one in facts if one.opened is not None and one.state in WITH_SOURCES
    )


def _openings(facts: Facts) -> float | None:
    """Return the mean number of source openings per answer with sources."""
    return _mean(
        sum(one.opened.values()) for one in facts if one.opened is not None and one.state in WITH_SOURCES
    )


def _tokens(kind: str) -> Callable[[Facts], float | None]:
    return lambda facts: _mean(count for one in facts if (count := one.tokens.get(kind)) is not None)


def _milliseconds(part: str) -> Callable[[Facts], float | None]:
    return lambda facts: _median(one.milliseconds[part] for one in facts if part in one.milliseconds)


# By name. Times are medians; tokens are means over the questions that called a model.
METRICS: dict[str, QualityMetric] = {
    "answered": QualityMetric("answered", "share", _share_of(*ANSWERED)),
    "passages": QualityMetric("passages shown", "share", _share_of(AnswerState.PASSAGES)),
    "not_found": QualityMetric("not found", "share", _share_of(AnswerState.NOT_FOUND)),
    "failed": QualityMetric("failed", "share", _share_of(AnswerState.FAILED)),
    "documents": QualityMetric("documents in the top five", "", _documents),
    "recent": QualityMetric("recent ones among them", "share", _recent),
    "figures": QualityMetric("figures per answer", "", _figures),
    "fitting": QualityMetric("figures on a cited page", "share", _figures_on_cited_pages),
    "helpful": QualityMetric("thumbs up", "share", _thumbs_up_share),
    "doubted": QualityMetric("disputed answers", "share", _disputed_share),
    "corrected": QualityMetric("right page reported", "", _corrected),
    "opened": QualityMetric("answers with an opened source", "share", _opened),
    "openings": QualityMetric("openings per answer", "", _openings),
    "first_ms": QualityMetric("time to first words", "ms", _milliseconds("first")),
    "total_ms": QualityMetric("time to whole answer", "ms", _milliseconds("total")),
    "prompt_tokens": QualityMetric("prompt tokens", "tokens", _tokens("prompt")),
    "completion_tokens": QualityMetric("completion tokens", "tokens", _tokens("completion")),
}


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
            "targets": {name: [limit.sign, limit.value] for name, limit in FIGURE_TARGETS.items()},
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
    limit = FIGURE_TARGETS.get(name)
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
