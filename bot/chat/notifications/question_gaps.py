"""Knowledge gaps: similar questions that a channel's documents left unanswered, or whose answer was disputed.

Questions are similar if they share most of their content words. A gap is closed once a similar question was
answered and not disputed, or resolved by a person; one that waits for a person is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.answers.understanding.question_terms import weighted_terms
from bot.core.models import AnswerState
from storage.chat.feedback import SETTLED, FeedbackVerdict
from storage.chat.traces import AskedQuestion

# Similarity threshold of two questions: Jaccard index of their content words.
SIMILARITY_THRESHOLD = 0.6
ANSWERED = {AnswerState.GROUNDED, AnswerState.PARTIAL, AnswerState.PASSAGES}


@dataclass(frozen=True, slots=True)
class QuestionGap:
    """A group of similar questions to one channel that needs a document."""

    # The newest of the group.
    question: str
    # Questions that were unanswered or disputed.
    count: int
    # Answer state -> number of questions.
    states: Mapping[str, int]
    # Negative feedback verdict -> count.
    disputes: Mapping[str, int]
    last_asked: datetime
    # Words that occur in no document, most frequent first.
    unknown: tuple[str, ...]
    # Ids of the questions, oldest first; `footnote records` shows each.
    ids: tuple[str, ...]


def find_gaps(asked: Sequence[AskedQuestion]) -> list[QuestionGap]:
    """Return the open gaps, most frequent first; ``asked`` is in chronological order."""
    gaps = [_gap(open_) for group in _groups(asked) if (open_ := _open(group))]
    return sorted(gaps, key=lambda gap: (gap.count, gap.last_asked), reverse=True)


@dataclass(frozen=True, slots=True)
class AskedOften:
    """A group of similar questions to one channel."""

    # The newest of the group.
    question: str
    count: int
    # Answer state -> number of questions.
    states: Mapping[str, int]
    last_asked: datetime
    # Id of the newest.
    id: str


def most_asked(asked: Sequence[AskedQuestion], most: int) -> list[AskedOften]:
    """Return at most ``most`` groups asked more than once, most frequent first.

    ``asked`` is in chronological order.
    """
    often = [
        AskedOften(
            group[-1].question,
            len(group),
            Counter(one.state for one in group),
            group[-1].asked_at,
            group[-1].key,
        )
        for group in _groups(asked)
        if len(group) > 1
    ]
    return sorted(often, key=lambda one: (one.count, one.last_asked), reverse=True)[:most]


def _groups(asked: Sequence[AskedQuestion]) -> Iterator[list[AskedQuestion]]:
    groups: list[tuple[set[str], list[AskedQuestion]]] = []
    for one in asked:
        terms = weighted_terms(one.question)
        for known, members in groups:
            if _jaccard(terms, known) >= SIMILARITY_THRESHOLD:
                members.append(one)
                break
        else:
            if terms:
                groups.append((terms, [one]))
    return (members for _, members in groups)


def _jaccard(terms: set[str], others: set[str]) -> float:
    return len(terms & others) / len(terms | others) if terms | others else 0.0


def _open(group: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    """Return the unanswered or disputed questions since the group's last good answer."""
    later = len(group)
    while later and not _is_answered(group[later - 1]):
        later -= 1
    return [one for one in group[later:] if _is_unanswered(one) or _disputes(one)]


def _is_answered(one: AskedQuestion) -> bool:
    is_answered = one.state in ANSWERED or FeedbackVerdict.RESOLVED in one.verdicts
    return is_answered and not _disputes(one)


def _is_unanswered(one: AskedQuestion) -> bool:
    return one.state == AnswerState.NOT_FOUND and SETTLED.isdisjoint(one.verdicts)


def _disputes(one: AskedQuestion) -> list[str]:
    return [verdict for verdict in one.verdicts if verdict not in SETTLED]


def _gap(group: Sequence[AskedQuestion]) -> QuestionGap:
    words = Counter(word for one in group for word in one.unknown)
    return QuestionGap(
        question=group[-1].question,
        count=len(group),
        states=Counter(one.state for one in group),
        disputes=Counter(verdict for one in group for verdict in _disputes(one)),
        last_asked=group[-1].asked_at,
        unknown=tuple(word for word, _ in words.most_common()),
        ids=tuple(one.key for one in group),
    )
