"""Behaviour under load: priority by rate limits, paced posts, estimated waiting times.

All state is in process memory and lost on restart: limits reorder the work and drop none of it.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from bot.core.models import Language
from bot.core.ports import IncomingMessage
from bot.core.wording import reply_words
from bot.settings import BotSettings
from storage.chat_models import InboxItem
from storage.clock import monotonic_seconds

MINUTE = 60.0
# People, channels and workspaces counted at the same time.
MAX_COUNTED = 10_000
# A shorter wait is not announced.
SHORT_WAIT_SECONDS = 20.0
# Estimated time of an answer before the first one is measured.
FIRST_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Pacing:
    """Delays in seconds by which work yields to incoming messages, and posts to a rate limit."""

    # Longest delay of an answer while messages are being stored and placeholders posted.
    answer_delay: float = 1.0
    # Longest delay of the next placeholders while messages are being stored.
    placeholder_delay: float = 0.1
    # Between two posts in a rate-limited channel: Slack accepts one a second.
    post_pause: float = 1.0


class QuestionOrigin(NamedTuple):
    """The asker, channel and workspace of a question; empty values are not counted."""

    person: str
    channel: str = ""
    workspace: str = ""

    @classmethod
    def of_message(cls, message: IncomingMessage) -> Self:
        """Return the origin of a chat message."""
        return cls(str(message.address.get("asker") or ""), message.key.tenant, message.key.installation)


class QuestionRateLimiter:
    """Rate limiter: over a limit, questions in a chat lose priority, and the console refuses them."""

    def __init__(self, settings: BotSettings) -> None:
        self._settings = settings
        self._moments: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)

    def is_beyond(self, origin: QuestionOrigin) -> bool:
        """True if the asker, the channel or the workspace reached its limit in the past minute."""
        return any(self._count(key) >= limit for key, limit in self._limited(origin))

    def count(self, origin: QuestionOrigin) -> None:
        """Count a question that is no duplicate; one over a limit is not counted."""
        if self.is_beyond(origin):
            return
        if len(self._moments) >= MAX_COUNTED:
            for stale in [one for one in self._moments if not self._count(one)]:
                del self._moments[stale]
        for key, _ in self._limited(origin):
            self._moments[key].append(monotonic_seconds())

    def _limited(self, origin: QuestionOrigin) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the keys to count, each with its limit."""
        limits = (getattr(self._settings, f"{kind}_questions") for kind in origin._fields)
        named = zip(origin._fields, origin, limits, strict=True)
        return (((kind, name), limit) for kind, name, limit in named if name and limit)

    def _count(self, key: tuple[str, str]) -> int:
        moments = self._moments.get(key)
        while moments and moments[0] <= monotonic_seconds() - MINUTE:
            moments.popleft()
        return len(moments) if moments else 0


class PostRateLimiter:
    """Paces posts per channel: without a pause, until the platform rate-limits the channel.

    From then on that channel gets one post per ``pause`` seconds, until a minute has passed without a
    refusal.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._next_at: dict[int, float] = {}
        self._refused_at: dict[int, float] = {}

    def refused(self, channel: int, seconds: float) -> None:
        """Record that the platform accepts nothing in a channel for ``seconds``."""
        now = monotonic_seconds()
        self._next_at[channel] = max(self._next_at.get(channel, 0.0), now + max(seconds, self._pause))
        self._refused_at[channel] = now + seconds

    def closed_channels(self) -> Sequence[int]:
        """Return the channels in which nothing may be posted at this moment."""
        now = monotonic_seconds()
        for channel in [one for one, at in self._refused_at.items() if at <= now - MINUTE]:
            del self._refused_at[channel], self._next_at[channel]
        return [channel for channel, at in self._next_at.items() if at > now]

    def take(self, channel: int) -> bool:
        """True if a message may be posted in a channel now; if so, it counts as posted."""
        now = monotonic_seconds()
        if (at := self._next_at.get(channel)) is None:
            return True
        if at > now:
            return False
        self._next_at[channel] = now + self._pause
        return True


class WaitEstimator:
    """Estimates how long queued questions wait, and words it."""

    def __init__(self, concurrency: int) -> None:
        """Create an estimator; ``concurrency``: questions answered at the same time."""
        self._concurrency = concurrency
        self._answer_seconds = FIRST_ANSWER_SECONDS
        self._in_progress = 0

    @contextlib.contextmanager
    def in_progress(self) -> Iterator[None]:
        """Count a question as in progress while the block runs."""
        self._in_progress += 1
        try:
            yield
        finally:
            self._in_progress -= 1

    def answered(self, seconds: float) -> None:
        """Add an answer's time to the exponential moving average, with a weight of 1/10."""
        self._answer_seconds += (seconds - self._answer_seconds) / 10

    def sentence(self, item: InboxItem, language: Language) -> str:
        """Return the placeholder text of a queued question."""
        words = reply_words(language)
        if not item.ahead and not self._in_progress:  # nothing comes first: only the claim was slow
            return words.searching
        seconds = item.ahead * self._answer_seconds / self._concurrency
        if not item.ahead or (seconds < SHORT_WAIT_SECONDS and not item.is_late):
            return words.queued
        return words.busy(max(1, math.ceil(seconds / MINUTE)), ahead=item.ahead)
