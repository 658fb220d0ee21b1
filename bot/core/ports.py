"""Ports of the core: interfaces that chat platforms, language models and retrievers implement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from bot.core.models import (
    AnalyzedQuestion,
    Answer,
    AnswerFigure,
    Citation,
    CitedPage,
    Claim,
    Draft,
    Evidence,
    Judgement,
    Language,
    Question,
    QuotedSentence,
    Reply,
    Retrieval,
    SourceChange,
)
from storage.chat_models import InboxItem
from storage.models import Channel, ChannelKey, PageImage, TenantName

# After this time without a stored event, ask the platform to redeliver: Slack times out after 3 s.
ACK_SECONDS = 2.5

# Renews the lease on a question; raises ``storage.errors.LeaseLost`` if another worker has it.
RenewLease = Callable[[], Awaitable[None]]

# Stores the reference of our chat message durably, replacing the previous one.
# It raises ``storage.errors.LeaseLost`` if another worker has the question.
SaveMessage = Callable[[dict[str, Any]], Awaitable[None]]

# Called with each sentence of a draft as soon as it and its quotes are complete.
OnClaim = Callable[[Claim], None]


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A verified platform event that contains a question."""

    # From the verified envelope only.
    key: ChannelKey
    channel_name: str | None
    # The platform's event id with its installation, to deduplicate redelivered events.
    event_key: str
    # Message id with installation and conversation, as one message may arrive in several events.
    message_key: str
    # Thread id within the channel; '' if the whole chat is one conversation.
    thread: str
    # Without the bot mention.
    text: str
    # Reply address in the format of the platform's messenger; stored as JSON.
    address: dict[str, Any]
    # True for a one-to-one chat with the bot; None: the envelope does not say, and an earlier value holds.
    is_direct: bool | None = None
    # The bot is not mentioned: it counts as a question only in a thread the bot already takes part in.
    is_unaddressed: bool = False


@dataclass(frozen=True, slots=True)
class AnnouncementEntry:
    """A file or folder in an announcement."""

    headline: str
    # Unreadable parts with the reason, or what to do.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Announcement:
    """The content of an unsolicited message."""

    # Identifies the message, so that an earlier post of it can be found.
    id: str
    lead: str
    entries: tuple[AnnouncementEntry, ...]
    # Counts of the files that are not listed.
    more: tuple[str, ...] = ()
    # Button that opens the first page of its only file; none for several.
    sources: tuple[CitedPage, ...] = ()
    # Asked by a button beside it; '' for none.
    asks_news: str = ""
    # Tested questions of the channel, each shown as a button if the platform supports it.
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChannelOverview:
    """Overview of a channel for one of its members."""

    tenant: TenantName
    name: str
    # All documents with their metadata, one per line, then the unreadable ones.
    documents: str
    # Tested questions.
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored answer with the reply address of its question."""

    address: dict[str, Any]
    answer: Answer


@dataclass(frozen=True, slots=True)
class LinkPreview:
    """Preview of a link to a source."""

    # The link's channel: only its members are shown the preview.
    tenant: TenantName
    # Page and document, as on a source button.
    label: str
    # The highlighted passage; '' if there is none.
    quote: str


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage found for a query, and its best sentence as a citation."""

    document: UUID
    citation: Citation
    text: str
    # Relevance, 0-1.
    score: float


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to cancel the questions in progress in a thread."""

    key: ChannelKey
    thread: str
    # Key of the thread's first message, for chats that are one running conversation.
    message_key: str
    # True if the question of a reply address is older than the request.
    covers: Callable[[dict[str, Any]], bool]


# Returns at most so many passages of the question's channel, best first, without writing an answer.
# It raises ``storage.errors.InfrastructureError`` or TimeoutError if an engine is down or slow.
SearchPassages = Callable[[Question, int], Awaitable[Sequence[FoundPassage]]]

# Assigns a chat message to a question; False if another question has it.
ClaimMessage = Callable[[dict[str, Any]], Awaitable[bool]]
# Renders the picture of a figure's ``image`` link.
# It raises ``LinkError`` if the link has ended, ``storage.errors.DocumentError`` if the page cannot be
# rendered, and ``storage.errors.InfrastructureError`` or OSError if rendering is temporarily unavailable.
DrawFigure = Callable[[AnswerFigure], Awaitable[PageImage]]


class Announcer(Protocol):
    """Posts unsolicited messages on one platform; ``place`` is an address in that platform's format."""

    def announcement_address(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the address to post at in a channel; None while it is unknown.

        Args:
            address: reply address of the channel's latest question, if there was one.
        """

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post an unsolicited message; in the thread of ``place["below"]``, if that is set.

        Raises:
            bot.core.errors.ChannelClosed: the bot can never post in this channel.
            bot.core.errors.DeliveryError: the platform refused or did not respond.
        """

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """True if the announcement with this id was posted; None if the platform cannot search.

        Raises:
            bot.core.errors.DeliveryError: the platform refused the search.
        """


class ExpiringStore(Protocol):
    """A store with a retention period."""

    async def delete_expired(self) -> int:
        """Delete a batch of expired entries and return its size.

        Raises:
            storage.errors.DatabaseUnavailable: the database is unavailable.
        """


class Generator(Protocol):
    """A language model."""

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        *,
        verified_sentences: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        """Draft an answer from the numbered ``evidence`` alone.

        Args:
            verified_sentences: verified sentences of an earlier draft; only what they leave out is wanted.
            on_claim: called with each complete sentence; after an error, its sentences belong to no draft.

        Raises:
            bot.core.errors.ModelError: the model failed, or its reply was truncated or unusable.
        """

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return a short text that is complete.

        Raises:
            bot.core.errors.ModelError: the model failed or timed out, or its reply was truncated.
        """


class SentenceJudge(Protocol):
    """Judges whether sentences are entailed by their sources."""

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Judge all sentences of an answer in one call, from the question and their sources alone.

        Raises:
            bot.core.errors.ModelError: the verdict does not cover every sentence.
        """


class AnswerListener(Protocol):
    """Receives the beginning of an answer while the rest is written."""

    def show(self, text: str) -> None:
        """Show the sentences verified up to now, with their [n]; the final text begins with them.

        Returns immediately, and never fails the answer.
        """


class Retriever(Protocol):
    """Retrieves passages from one channel."""

    async def retrieve(self, question: Question) -> Retrieval:
        """Return the best candidates of the question's channel, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or timed out.
        """


class QuestionAnswering(Protocol):
    """Answers questions."""

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer; failing engines and models yield one that says so."""


class NoteWriter(Protocol):
    """Writes change notes to threads that follow a page; a note holds subscription, version and page."""

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """Return the channel of the page's document; None if there is nothing to report.

        Raises:
            storage.errors.InfrastructureError: the database is unavailable.
        """

    async def write(self, note: Mapping[str, int]) -> Answer:
        """Return the note for the thread.

        Raises:
            storage.errors.InfrastructureError: the document's reading is temporarily unavailable.
        """


# Takes in the file of a message, once; None: it is searchable, and the question that came with it can be
# answered.
# It raises ``FileNotReady`` until then.
IngestUpload = Callable[[InboxItem], Awaitable[Answer | None]]


class Messenger(Protocol):
    """Replies on one platform; ``address`` and ``message`` are stored in that platform's format."""

    async def post_placeholder(
        self, address: dict[str, Any], language: Language, *, queued: str = "", asked: str = ""
    ) -> dict[str, Any]:
        """Post a placeholder as a reply to the question and return its message reference.

        Does not wait for a rate limit, as that would delay other questions.

        Args:
            queued: sentence for a question that waits for others; '': the search begins now.
            asked: text of the question, for platforms that title a conversation after its first one.

        Raises:
            bot.core.errors.DeliveryUnclear: it may or may not have been posted.
            bot.core.errors.DeliveryError: it was not posted.
        """

    async def find_placeholder(
        self, address: dict[str, Any], others: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any] | None:
        """Return the reference of the placeholder that an earlier ``post_placeholder`` may have posted.

        Called when the outcome of that post is unknown. A platform that cannot search returns None; there a
        second placeholder may appear. ``others``: message references of the thread's other questions.

        Raises:
            bot.core.errors.DeliveryError: the platform refused the search.
        """

    async def show_partial(self, address: dict[str, Any], message: dict[str, Any], text: str) -> None:
        """Overwrite the placeholder with the first sentences of an answer, marked as incomplete.

        Best effort: tried once.

        Raises:
            bot.core.errors.DeliveryError: the platform refused or did not respond.
        """

    async def deliver(
        self, address: dict[str, Any], message: dict[str, Any], answer: Answer, save: SaveMessage
    ) -> None:
        """Replace the placeholder with the answer; idempotent, as far as people see.

        The references of any further messages are passed to ``save`` before and after they are posted, so
        that a retry does not post them again.

        Raises:
            storage.errors.LeaseLost: from ``save``.
            bot.core.errors.DeliveryError: the platform refused or did not respond.
        """

    async def attach_figures(
        self, address: dict[str, Any], message: dict[str, Any], answer: Answer, renew: RenewLease
    ) -> None:
        """Add the figures to a delivered answer, on platforms that want the pictures uploaded.

        Best effort: a failure only costs a picture. Idempotent, as far as people see.

        Raises:
            storage.errors.LeaseLost: from ``renew``, which is called before anything is shown.
        """

    async def replace_erased(self, address: dict[str, Any], message: dict[str, Any], answer: Answer) -> None:
        """Overwrite an erased answer with a notice; also delete its pictures and its card.

        Raises: as ``revise``.
        """

    async def revise(
        self,
        address: dict[str, Any],
        message: dict[str, Any],
        answer: Answer,
        changes: Sequence[SourceChange],
    ) -> None:
        """Overwrite a delivered answer with what changed in its sources; posts no new message.

        Raises:
            bot.core.errors.ChannelClosed: this message can never be updated again.
            bot.core.errors.DeliveryError: the platform refused or did not respond.
        """
