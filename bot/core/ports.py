"""What the core needs from the rooms around it; each is satisfied by shape, nothing imports back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from bot.core.models import Answer, Draft, Evidence, Passage, Question
from storage.models import Channel, Chunk, CitationRecord, LivePublication


class Retriever(Protocol):
    """Finds passages in one channel."""

    async def retrieve(self, question: Question) -> Retrieval:
        """The best candidates of the question's channel, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """


class Retrieval(Protocol):
    """What a retriever found, and what it knows of the question's words in this channel."""

    @property
    def passages(self) -> Sequence[Passage]:
        """Candidates in final order, at least 20 when there are that many."""

    @property
    def idf(self) -> dict[str, float]:
        """Weight of each of the question's terms in this channel."""


class Answerer(Protocol):
    """Writes a draft from numbered evidence: quotes of the documents, or a model's sentences."""

    async def draft(self, question: str, evidence: Sequence[Evidence], faults: Sequence[str] = ()) -> Draft:
        """Answer from ``evidence`` alone; ``faults`` names what was wrong with the last draft.

        Raises:
            bot.core.errors.ModelError: the model failed, was cut off or wrote nothing usable.
        """


class ChunkReader(Protocol):
    """Gives back chunks with their offset -> box maps."""

    async def chunk(self, publication: LivePublication, ordinal: int) -> Chunk:
        """One chunk of a live publication's reading."""


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
