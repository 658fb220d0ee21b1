"""What the core needs from the rooms around it; each is satisfied by shape, nothing imports back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from bot.core.models import AnalyzedQuestion, Answer, Draft, Evidence, Question, Retrieval
from storage.index.contract import Hit
from storage.models import Channel, Chunk, CitationRecord, DocumentStatus, LivePublication

FloatArray = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into vectors of one space."""

    async def aembed(self, texts: Sequence[str]) -> FloatArray:
        """L2-normalised float32 vectors of shape (texts, dimensions)."""


class FoundChunks(Protocol):
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


class ChannelSearch(Protocol):
    """Searches the live chunks of one channel."""

    async def find(
        self,
        channel: Channel,
        terms: Sequence[str],
        vector: Sequence[float] | None,
        groups: Sequence[frozenset[str]] = (),
        *,
        limit: int,
    ) -> FoundChunks:
        """The best live chunks of each leg.

        Raises:
            storage.errors.UnknownTenant: nothing was ever put into this channel.
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


class Answerer(Protocol):
    """Writes a draft from numbered evidence: quotes of the documents, or a model's sentences."""

    async def draft(
        self, question: AnalyzedQuestion, evidence: Sequence[Evidence], faults: Sequence[str] = ()
    ) -> Draft:
        """Answer from ``evidence`` alone; ``faults`` names what was wrong with the last draft.

        Raises:
            bot.core.errors.ModelError: the model failed, was cut off or wrote nothing usable.
        """


class ChunkReader(Protocol):
    """Gives back chunks with their offset -> box maps."""

    async def chunk(self, reading_id: UUID, ordinal: int) -> Chunk:
        """One chunk of a reading.

        Raises:
            storage.errors.InfrastructureError: readings cannot be reached.
        """


class ChannelDocuments(Protocol):
    """Knows which documents a channel has."""

    async def has_live(self, channel_id: int) -> bool:
        """Whether anything of the channel answers."""

    async def documents(self, channel_id: int) -> Sequence[DocumentStatus]:
        """All documents of the channel with their states."""


class CitationStore(Protocol):
    """Keeps what was shown."""

    async def add(
        self, channel_id: int, version_id: int, page: int, quote: str, boxes: Collection[Sequence[float]]
    ) -> CitationRecord:
        """Keep one citation, so that its link outlives readings and chunks."""


class LinkIssuer(Protocol):
    """Makes signed links."""

    def page_url(self, channel: Channel, citation: CitationRecord) -> str:
        """A signed, expiring URL of the cited page."""


class Messenger(Protocol):
    """One platform's way to reply; ``address`` and ``message`` are what that platform stored."""

    async def place(self, address: dict[str, Any]) -> dict[str, Any]:
        """Post a placeholder where the question was asked and return what names it.

        Raises:
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def deliver(self, address: dict[str, Any], message: dict[str, Any], answer: Answer) -> None:
        """Replace the placeholder with the answer; repeating it changes nothing a person sees."""
