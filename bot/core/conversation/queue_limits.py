"""What happens under a flood: which questions go behind others, where nobody may post, how long it takes.

All of it is one process's memory, and a restart forgets it: limits order the work and lose none of it.
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
from storage.chat_models import InboxItem
from storage.clock import steady_seconds

MINUTE = 60.0
# People, channels and workspaces that are counted at the same time.
MAX_COUNTED = 10_000
# Nobody is told how long a shorter wait is.
SHORT_WAIT_SECONDS = 20.0
# How long an answer takes, before any was made.
FIRST_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """Questions within a minute that are answered in turn; 0: all."""

    person: int = 0
    channel: int = 0
    # Of a Slack workspace, or organisation that installed the app, or Teams tenant.
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class Pacing:
    """Seconds for which work gives way to what arrives, and posts to a platform that asked us to wait."""

    # Longest wait of an answer for messages that are being kept and placeholders that are being posted.
    held_back: float = 1.0
    # Longest wait of the next placeholders for messages that are being kept.
    placing_held_back: float = 0.1
    # Between two posts in a channel whose platform asked us to wait: Slack takes one a second.
    post_pause: float = 1.0


class QuestionOrigin(NamedTuple):
    """Whose question it is, and where it was asked; what is empty is not counted."""

    person: str
    channel: str = ""
    workspace: str = ""

    @classmethod
    def of_message(cls, message: IncomingMessage) -> Self:
        """Read the origin of a chat's message."""
        return cls(str(message.address.get("asker") or ""), message.key.tenant, message.key.installation)


class QuestionRates:
    """Counts questions: beyond a limit a chat's goes behind the others, and the console refuses it."""

    def __init__(self, limits: QuestionLimits) -> None:
        """Count against these limits."""
        self._limits = limits
        self._moments: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)

    def is_beyond(self, origin: QuestionOrigin) -> bool:
        """Return whether who asks, their channel or their workspace has asked too much within a minute."""
        return any(self._count(key) >= limit for key, limit in self._limited(origin))

    def count(self, origin: QuestionOrigin) -> None:
        """Count a question that is no repetition; what is beyond a limit counts no further."""
        if self.is_beyond(origin):
            return
        if len(self._moments) >= MAX_COUNTED:
            for stale in [one for one in self._moments if not self._count(one)]:
                del self._moments[stale]
        for key, _ in self._limited(origin):
            self._moments[key].append(steady_seconds())

    def _limited(self, origin: QuestionOrigin) -> Iterator[tuple[tuple[str, str], int]]:
        """List each that is counted, with its limit."""
        limits = (self._limits.person, self._limits.channel, self._limits.workspace)
        named = zip(QuestionOrigin._fields, origin, limits, strict=True)
        return (((kind, name), limit) for kind, name, limit in named if name and limit)

    def _count(self, key: tuple[str, str]) -> int:
        moments = self._moments.get(key)
        while moments and moments[0] <= steady_seconds() - MINUTE:
            moments.popleft()
        return len(moments) if moments else 0


class PostPace:
    """Where placeholders may be posted: everywhere, until a platform asks us to wait in one channel.

    From then on that channel gets one post a second, until a minute has passed without a refusal.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._next_at: dict[int, float] = {}
        self._refused_at: dict[int, float] = {}

    def refused(self, channel: int, seconds: float) -> None:
        """The platform takes nothing there for so long."""
        now = steady_seconds()
        self._next_at[channel] = max(self._next_at.get(channel, 0.0), now + max(seconds, self._pause))
        self._refused_at[channel] = now + seconds

    def closed_channels(self) -> Sequence[int]:
        """Those in which nothing may be posted at this moment."""
        now = steady_seconds()
        for channel in [one for one, at in self._refused_at.items() if at <= now - MINUTE]:
            del self._refused_at[channel], self._next_at[channel]
        return [channel for channel, at in self._next_at.items() if at > now]

    def take(self, channel: int) -> bool:
        """True if one more message may be posted in a channel now; if so, it counts as posted."""
        now = steady_seconds()
        if (at := self._next_at.get(channel)) is None:
            return True
        if at > now:
            return False
        self._next_at[channel] = now + self._pause
        return True


class QueueWaits:
    """Tells those who wait how long that may be."""

    def __init__(self, concurrency: int) -> None:
        """So many questions are answered at the same time."""
        self._concurrency = concurrency
        self._answer_seconds = FIRST_ANSWER_SECONDS
        self._in_work = 0

    @contextlib.contextmanager
    def in_work(self) -> Iterator[None]:
        """While one question is worked on, for which others wait."""
        self._in_work += 1
        try:
            yield
        finally:
            self._in_work -= 1

    def answered(self, seconds: float) -> None:
        """One answer took so long to make; the newest ten count most."""
        self._answer_seconds += (seconds - self._answer_seconds) / 10

    def sentence(self, item: InboxItem, language: Language) -> str:
        """What stands in the place of an answer that others are made before."""
        words = reply_words(language)
        if not item.ahead and not self._in_work:  # nobody is first: the claim was slow
            return words.searching
        seconds = item.ahead * self._answer_seconds / self._concurrency
        if not item.ahead or (seconds < SHORT_WAIT_SECONDS and not item.is_late):
            return words.queued
        return words.busy(max(1, math.ceil(seconds / MINUTE)), ahead=item.ahead)
