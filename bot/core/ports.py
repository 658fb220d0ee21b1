"""What the core needs from the rooms around it; each is satisfied by shape, nothing imports back.

What announcing needs from the rooms around it; each is satisfied by shape, as in ``ports.py``.

What understanding a question in its thread needs from the rooms around it; satisfied by shape.

What having an answer written needs from the rooms around it, and offers to them; satisfied by shape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from bot.core.model_calls import Reply
from bot.core.models import (
    AnalyzedQuestion,
    Announcement,
    Answer,
    Claim,
    Draft,
    Evidence,
    Language,
    Question,
    Retrieval,
)
from storage.chat_models import NewTurn, Notice, NoticeBatch, NoticeGroup, Turn
from storage.index.base import Hit, PendingVector
from storage.models import (
    Channel,
    ChannelKey,
    Chunk,
    CitationRecord,
    DocumentStatus,
    Figure,
    InboxItem,
    LivePublication,
    Platform,
    Shown,
)


class NoticesPort(Protocol):
    """Keeps what should be told and what became of it.

    Every method raises ``storage.errors.DatabaseUnavailable`` when nothing can be kept.
    """

    async def waiting(self) -> Sequence[NoticeGroup]:
        """What waits and nobody is at, by channel."""

    async def claim(self, groups: Collection[NoticeGroup], lease_seconds: float) -> str:
        """Make a batch of all that waits in these groups; returns its id."""

    async def read(self, batch: str, most: int) -> Mapping[str, tuple[int, Sequence[Notice]]]:
        """By kind: how many notices of a batch are still true, and the first of them."""

    async def keep_questions(self, notice_id: int, questions: Sequence[str]) -> None:
        """Keep what was tried for one notice."""

    async def mark_posting(self, batch: str, told_in: int, lease_seconds: float) -> None:
        """Keep, before it happens, that a batch is being posted; LeaseLost when others tell it."""

    async def finish(self, batch: str, state: str) -> None:
        """End a batch as posted, kept or dropped."""

    async def give_back(self, batch: str) -> None:
        """Nothing of a batch was posted: it waits again."""

    async def put_off(self, batch: str, seconds: float) -> None:
        """Nobody knows whether a batch was posted: whoever comes later looks."""

    async def take_over(self, lease_seconds: float) -> NoticeBatch | None:
        """A batch whose posting nobody saw the end of, or None."""

    async def expire(self, before: datetime) -> int:
        """Keep for the console what waited too long."""

    async def last_address(self, channel_id: int) -> dict[str, Any] | None:
        """Where the newest question of a channel came from."""


class ReceiptChunks(Protocol):
    """Gives back chunks of readings."""

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> Sequence[Chunk]:
        """The chunk of each (reading, ordinal)."""


class Announcer(Protocol):
    """One platform's way to speak first; ``place`` is what that platform made of a channel."""

    def announcing_place(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Where in a channel it would speak; None while that is not known.

        Args:
            channel: the channel.
            address: where the channel's newest question came from, if there ever was one.
        """

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post one message that nobody asked for.

        Raises:
            bot.core.errors.ChannelClosed: never in this channel.
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """Whether the announcement of this id stands there; None from a platform that cannot look.

        Raises:
            bot.core.errors.DeliveryError: the platform did not let us look.
        """


class ThreadMemoryPort(Protocol):
    """Remembers what was asked and answered in each thread of each channel."""

    async def recall(self, channel_id: int, thread: str, asked_at: datetime) -> tuple[Turn, ...]:
        """The last turns before a question of this thread, newest last; few enough to be read at once.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be recalled just now.
        """

    async def keep(self, turn: NewTurn) -> None:
        """Remember a turn, once.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be kept just now.
        """


class Expiring(Protocol):
    """Keeps things for a while only."""

    async def delete_expired(self) -> int:
        """Erase some of what has been kept long enough; returns how much that was.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be erased just now.
        """


class QueryRewriter(Protocol):
    """Words a follow-up question so that it can be understood without its thread."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> str:
        """The question as one would ask it alone; itself when it needs nothing of the thread.

        Raises:
            bot.core.errors.ModelError: there is no rewriting that can be trusted.
        """


class TextModel(Protocol):
    """A language model that writes a short text."""

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """What it writes, whole.

        Raises:
            bot.core.errors.ModelError: it failed, was late or was cut off.
        """


OnClaim = Callable[[Claim], None]
"""Told each sentence of a draft as soon as it and its quotes are complete."""


class QuoteAnswerer(Protocol):
    """Answers with the documents' own words."""

    async def draft(self, question: AnalyzedQuestion, evidence: Sequence[Evidence]) -> Draft:
        """A draft of quotes from numbered evidence."""


class Generator(Protocol):
    """Answers in words of its own, as a language model does."""

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        faults: Sequence[str] = (),
        *,
        stands: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        """Answer from numbered ``evidence`` alone.

        Args:
            question: what is asked.
            evidence: what may be quoted.
            faults: what was wrong with the last draft.
            stands: sentences of an earlier draft that are proven; only what they do not say is wanted.
            tell: what was told before an error belongs to no draft.

        Raises:
            bot.core.errors.ModelError: the model failed, was cut off or wrote nothing usable.
        """


class AnswerListener(Protocol):
    """Shows a person who waits how far their answer has come."""

    def show(self, text: str) -> None:
        """The sentences that are proven so far, with their [n]; the answer's text will begin with them.

        Returns at once, whatever becomes of it.
        """


FloatArray = npt.NDArray[np.float32]


class QuestionEmbedder(Protocol):
    """Turns text into vectors of one space."""

    async def aembed(self, texts: Sequence[str]) -> FloatArray:
        """L2-normalised float32 vectors of shape (texts, dimensions)."""

    def count(self, text: str) -> int:
        """Tokens of a text, as it counts them."""


class SearchHitsPort(Protocol):
    """What one channel's search found: each leg best first, live chunks only."""

    @property
    def words(self) -> Sequence[Hit]:
        """Hits of BM25."""

    @property
    def vectors(self) -> Sequence[Hit]:
        """Hits by cosine; empty while the channel holds no vectors."""

    @property
    def publications(self) -> Mapping[UUID, LivePublication]:
        """The live publication of every hit."""

    @property
    def words_only(self) -> Collection[UUID]:
        """Those of ``publications`` that have no vectors the question's could be compared with."""

    @property
    def not_live(self) -> int:
        """Hits that are left out because their publication is not live."""


class ChannelSearchPort(Protocol):
    """Searches the live chunks of one channel."""

    async def find(
        self,
        channel: Channel,
        terms: Sequence[str],
        vector: PendingVector | None,
        groups: tuple[frozenset[str], ...] = (),
        *,
        limit: int,
    ) -> SearchHitsPort:
        """The best live chunks and figures of each leg; none in a channel that nothing was ever put into.

        ``vector`` may still be in the making: words are looked for meanwhile. ``groups``: only what has
        at least one facet of each.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """

    async def document_frequencies(
        self, channel: Channel, terms: Collection[str]
    ) -> tuple[int, dict[str, int]]:
        """(number of chunks in the channel, chunks per term)."""


class Retriever(Protocol):
    """Finds passages in one channel."""

    async def retrieve(self, question: Question) -> Retrieval:
        """The best candidates of the question's channel, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """


class ChunkReaderPort(Protocol):
    """Gives back chunks with their offset -> box maps."""

    async def chunks_at(self, places: Sequence[tuple[UUID, int]]) -> Sequence[Chunk]:
        """The chunk of each (reading, ordinal).

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached.
        """


class SentenceVectorReader(Protocol):
    """Knows the vectors that reading gave to parts of chunks."""

    async def vectors(
        self, chunks: Sequence[tuple[UUID, int, str]]
    ) -> Sequence[Mapping[tuple[int, int], FloatArray]]:
        """For each (reading, ordinal, text): (start, end) -> L2-normalised vector of a part of the text.

        Parts without a vector are missing.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached.
        """


class FigureReader(Protocol):
    """Gives back the figures of readings."""

    async def figure(self, reading_id: UUID, number: int) -> Figure:
        """One figure of a reading, counted from 0.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached.
        """


class ChannelDocuments(Protocol):
    """Knows which documents a channel has."""

    async def has_live(self, channel_id: int) -> bool:
        """Whether anything of the channel answers."""

    async def documents(self, channel_id: int) -> Sequence[DocumentStatus]:
        """All documents of the channel with their states."""


class CitationStorePort(Protocol):
    """Keeps what was shown."""

    async def add(self, channel_id: int, shown: Sequence[Shown]) -> Sequence[CitationRecord]:
        """Keep what is shown together, in this order, so that its links outlive readings and chunks."""


class LinkIssuer(Protocol):
    """Makes signed links."""

    def page_url(self, channel: Channel, citation: CitationRecord) -> str:
        """A signed, expiring URL of the cited page."""


class ChannelDirectoryPort(Protocol):
    """Knows the channels."""

    async def ensure(self, key: ChannelKey, name: str | None = None) -> Channel:
        """The channel of a verified envelope, made when it is new."""

    async def get(self, channel_id: int) -> Channel:
        """A channel that exists."""


class QuestionInboxPort(Protocol):
    """Keeps questions from the moment they arrive until their answer is seen.

    Every step raises ``storage.errors.LeaseLost`` when another worker has taken the question over,
    and ``storage.errors.DatabaseUnavailable`` when nothing can be kept.
    """

    async def receive(
        self,
        channel: Channel,
        *,
        event_key: str,
        message_key: str,
        thread: str,
        text: str,
        address: dict[str, Any],
    ) -> bool:
        """Keep a question for good; False when its event or its message is already known."""

    async def claim(
        self, owner: str, lease_seconds: float, platforms: Collection[Platform]
    ) -> InboxItem | None:
        """Take over the oldest question that is due, for ``lease_seconds``."""

    async def renew(self, item: InboxItem, lease_seconds: float) -> None:
        """Keep a question for longer."""

    async def mark_posting(self, item: InboxItem) -> None:
        """Keep, before it happens, that a placeholder is being posted."""

    async def mark_placed(self, item: InboxItem, message: dict[str, Any]) -> None:
        """Keep what names the placeholder."""

    async def save_answer(self, item: InboxItem, answer: dict[str, Any], turn: NewTurn | None = None) -> None:
        """Keep the answer, so that it is never asked for again, and what its thread remembers of it."""

    async def mark_delivered(self, item: InboxItem) -> None:
        """The answer was seen: the question is done."""

    async def release(self, item: InboxItem) -> None:
        """Let go of a question that somebody else may claim at once."""

    async def put_off(
        self, item: InboxItem, reason: str, *, at_least: float = 0, is_own_fault: bool = False
    ) -> None:
        """Let go of a question for a while, longer each time; its own fault counts as an attempt."""

    async def give_up(self, item: InboxItem, reason: str) -> None:
        """End a question whose answer nobody will take."""


class QuestionAnswering(Protocol):
    """Answers questions."""

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """The answer a person gets; faults of engines and models end in one that says so."""


class Messenger(Protocol):
    """One platform's way to reply; ``address`` and ``message`` are what that platform stored."""

    async def place(self, address: dict[str, Any], language: Language) -> dict[str, Any]:
        """Post a placeholder where the question was asked and return what names it.

        Raises:
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def find_placeholder(self, address: dict[str, Any]) -> dict[str, Any] | None:
        """What names the placeholder that an earlier ``place`` may have posted for this very question.

        Asked when nobody knows whether it did. A platform that cannot look returns None: there a
        second placeholder may appear.

        Raises:
            bot.core.errors.DeliveryError: the platform did not let us look.
        """

    async def show(self, address: dict[str, Any], message: dict[str, Any], text: str) -> None:
        """Write the first sentences of an answer over the placeholder, and that more is to come.

        Tried once: it is a decoration.

        Raises:
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def deliver(self, address: dict[str, Any], message: dict[str, Any], answer: Answer) -> None:
        """Replace the placeholder with the answer; repeating it changes nothing a person sees.

        Raises:
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """
