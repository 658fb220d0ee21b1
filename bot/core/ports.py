"""What the core needs from the rooms around it; each is satisfied by shape, nothing imports back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from bot.core.languages import Language
from bot.core.models import Answer, Question, Retrieval
from bot.core.writing_ports import AnswerListener
from storage.figure_models import Figure
from storage.index.contract import Hit, PendingVector
from storage.memory_models import NewTurn
from storage.models import (
    Channel,
    ChannelKey,
    Chunk,
    CitationRecord,
    DocumentStatus,
    InboxItem,
    LivePublication,
    Platform,
    Shown,
)

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
