"""Usage of channels by month: people, questions, outcomes, feedback, tokens and their cost.

Counted from the records of questions, as far back as they are kept; holds no words and names nobody.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from bot.core.models import AnswerState
from bot.quality.quality_metrics import ANSWERED, CHAT
from storage.chat.feedback import HANDOFFS, FeedbackVerdict
from storage.chat.traces import AnswerFacts, QuestionRecords
from storage.models import Channel

_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])")
TOKENS_PRICED = 1_000_000


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC."""

    begins: datetime

    @classmethod
    def parse(cls, text: str) -> Month | None:
        """Return the month written as YYYY-MM, None if it is none."""
        found = _MONTH.fullmatch(text)
        return cls(datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC)) if found else None

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """Return the month of a moment."""
        return cls(datetime(moment.year, moment.month, 1, tzinfo=UTC))

    @property
    def ends(self) -> datetime:
        """Begin of the next month."""
        years, month = divmod(self.begins.month, 12)
        return self.begins.replace(year=self.begins.year + years, month=month + 1)

    @property
    def previous(self) -> Month:
        """The month before."""
        years, month = divmod(self.begins.month - 2, 12)
        return Month(self.begins.replace(year=self.begins.year + years, month=month + 1))

    def __str__(self) -> str:
        return f"{self.begins:%Y-%m}"


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """Prices of a million tokens, in any currency; None: unknown."""

    prompt: float | None = None
    completion: float | None = None

    def cost(self, prompt: int, completion: int) -> float | None:
        """Return what these tokens cost, None without prices."""
        if self.prompt is None and self.completion is None:
            return None
        return ((self.prompt or 0) * prompt + (self.completion or 0) * completion) / TOKENS_PRICED


@dataclass(frozen=True, slots=True)
class ChannelUsage:
    """Usage of one channel, or of all, in a month."""

    month: str
    channel: str
    # Distinct askers in the chat; the console does not tell people apart.
    people: int
    questions: int
    answered: int
    not_found: int
    failed: int
    thumbs_up: int
    thumbs_down: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    # False if records of its first days were removed.
    is_whole: bool

    def as_json(self) -> dict[str, Any]:
        """Return the usage as printed by ``footnote quality --month --json``."""
        return asdict(self)


async def monthly_usage(
    records: QuestionRecords, channels: Iterable[Channel], month: Month, prices: TokenPrices
) -> list[ChannelUsage]:
    """Return the usage of each channel with questions in a month, by name.

    Raises:
        storage.errors.DatabaseUnavailable: the database is unavailable.
    """
    found = []
    for channel in channels:
        facts = await records.facts_since(channel.id, month.begins, month.ends)
        searched = [one for one in facts if one.state not in CHAT]
        if searched:
            people = await records.count_askers(channel.id, month.begins, month.ends)
            is_whole = records.kept_since <= month.begins
            found.append(_usage(str(month), channel.name, people, searched, prices, is_whole=is_whole))
    return sorted(found, key=lambda one: one.channel.casefold())


def _usage(
    month: str,
    channel: str,
    people: int,
    facts: Sequence[AnswerFacts],
    prices: TokenPrices,
    *,
    is_whole: bool,
) -> ChannelUsage:
    states = Counter(one.state for one in facts)
    verdicts = Counter(said for one in facts for said, _ in one.verdicts if said not in HANDOFFS)
    prompt, completion = (
        sum(one.tokens.get(kind) or 0 for one in facts) for kind in ("prompt", "completion")
    )
    return ChannelUsage(
        month,
        channel,
        people,
        len(facts),
        sum(states[one] for one in ANSWERED),
        states[AnswerState.NOT_FOUND],
        states[AnswerState.FAILED],
        verdicts[FeedbackVerdict.GOOD],
        verdicts.total() - verdicts[FeedbackVerdict.GOOD],
        prompt,
        completion,
        prices.cost(prompt, completion),
        is_whole,
    )


def usage_csv(usage: Iterable[ChannelUsage]) -> str:
    """Return usage as CSV with a header line."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ChannelUsage.__slots__)
    writer.writeheader()
    writer.writerows({**one.as_json(), "channel": _no_formula(one.channel)} for one in usage)
    return text.getvalue()


def _no_formula(name: str) -> str:
    """Return a channel's name so that spreadsheets do not compute it."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
