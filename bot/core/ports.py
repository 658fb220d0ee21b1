"""The borders of the core: chat platforms, language models and searches, each of more than one kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bot.core.models import (
    AnalyzedQuestion,
    Answer,
    AnswerFigure,
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
from storage.chat_models import InboxItem, RecentQuestion, WithdrawnItem
from storage.models import Channel, ChannelKey, PageImage, Platform, TenantName

# After so long a platform that has had no answer yet is asked to send again: Slack gives up after three.
ACK_SECONDS = 2.5

# Makes sure that a question is still ours for a while; else it raises ``storage.errors.LeaseLost``.
Hold = Callable[[], Awaitable[None]]

# Keeps for good what names our message in a chat, in place of what was kept of it before.
#
# It raises ``storage.errors.LeaseLost`` where the question is not ours any more.
Keep = Callable[[dict[str, Any]], Awaitable[None]]

# Called with each sentence of a draft as soon as it and its quotes are complete.
OnClaim = Callable[[Claim], None]


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A verified platform event that asks something."""

    # From the verified envelope only.
    key: ChannelKey
    channel_name: str | None
    # The platform's event id with its installation: the same event may be delivered again.
    event_key: str
    # The message with its installation and conversation: it may arrive as several events.
    message_key: str
    # Within the channel; '' where all that is said there is one running conversation.
    thread: str
    # Without the bot's mention.
    text: str
    # Where to reply, as the platform's own messenger wants it; stored as JSON.
    address: dict[str, Any]
    # Whether it is a chat between one person of the installation and the bot; None: the envelope does not
    # say, and what an earlier one said holds.
    is_direct: bool | None = None
    # Nobody mentioned us: it asks us only in a thread in which we answer already.
    is_unaddressed: bool = False


@dataclass(frozen=True, slots=True)
class AnnouncementEntry:
    """One file or folder of an announcement."""

    headline: str
    # What could not be read and why, or what to do.
    notes: tuple[str, ...] = ()
    # Questions that were tried and that this file answers.
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Announcement:
    """What one message says."""

    # Names the message, so that it can be found again.
    id: str
    lead: str
    entries: tuple[AnnouncementEntry, ...]
    # How many files there are beside the named ones.
    more: tuple[str, ...] = ()
    # Buttons that open the files' first pages.
    sources: tuple[CitedPage, ...] = ()
    # Tried questions of the channel that a button each asks, where the platform can.
    questions: tuple[str, ...] = ()


# Commits a message of a chat platform for good; False when it was known already, or asks others.
Receive = Callable[[IncomingMessage], Awaitable[bool]]

# Keeps what people call a channel.
NameChannel = Callable[[ChannelKey, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ChannelOverview:
    """What is shown of a channel to somebody who is in it."""

    tenant: TenantName
    name: str
    # All of them with what they say of themselves, a line each, and those that cannot be read.
    documents: str
    # The new and changed ones, a line each; '' where there are none.
    news: str
    # Tried questions.
    questions: tuple[str, ...]


# Reads channels that may be shown; those without documents are left out.
ReadOverviews = Callable[[Collection[TenantName]], Awaitable[Sequence[ChannelOverview]]]


# Reads tried questions of what the direct chats of a platform's installation are asked about.
ReadQuestions = Callable[[Platform, str], Awaitable[Sequence[str]]]

# Reads what a person asked of channels that may be shown, newest first: at most so many.
ReadRecent = Callable[[str, Collection[TenantName], int], Awaitable[Sequence[RecentQuestion]]]


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that is kept, and where its question was asked."""

    address: dict[str, Any]
    answer: Answer


@dataclass(frozen=True, slots=True)
class LinkPreview:
    """What a link of ours opens."""

    # Of the channel that it belongs to: nobody else is shown this.
    tenant: TenantName
    # Page and document, as on a source's button.
    label: str
    # The passage that is marked; '' where nothing is.
    quote: str


# Reads a URL; None when it is no link of ours that holds right now.
PreviewLink = Callable[[str], Awaitable[LinkPreview | None]]


class SetShared(Protocol):
    """Keeps whether a private answer was shown to its channel."""

    async def __call__(self, platform: Platform, message_key: str, *, is_shared: bool) -> bool:
        """False when that is known already, or nothing is known of the question."""


# The sources of the answer to a question (channel, question) with new links, for who may have them.
#
# It raises ``storage.errors.InfrastructureError``.
RenewLinks = Callable[[int, str, Language], Awaitable[Answer]]
# Keeps that a channel is gone, or that we are no more in it.
LeaveChannel = Callable[[ChannelKey], Awaitable[None]]
# Keeps that a channel is called otherwise by its platform from now on.
MoveChannel = Callable[[ChannelKey, ChannelKey], Awaitable[None]]
# (a channel's tenant name, one that it has got since), the newest last; raises ``DatabaseUnavailable``.
ReadMoves = Callable[[], Awaitable[Sequence[tuple[TenantName, TenantName]]]]


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Somebody wants no answer any more to what is in work in a thread."""

    key: ChannelKey
    thread: str
    # Of the message that the thread would hang on, where what is said runs on in the chat itself.
    message_key: str
    # Whether the question of an address was asked before.
    covers: Callable[[dict[str, Any]], bool]


# Keeps that a message is that of a certain question; False when it is another one's.
TakeMessage = Callable[[dict[str, Any]], Awaitable[bool]]
# Keeps that questions are not to be answered; False when none is in work.
StopQuestions = Callable[[StopRequest], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ChatIntake:
    """What Slack hands to us: what it is given is kept for good before a call returns."""

    receive: Receive
    # A known question was asked in other words: it is answered anew. False: it is unknown, or the same.
    edit: Receive
    # A message was deleted: if it asked us, its words and its answer are erased.
    withdraw: Callable[[Platform, str], Awaitable[WithdrawnItem | None]]
    # The answer to the question of a message key, as long as it is kept.
    given: Callable[[Platform, str], Awaitable[GivenAnswer | None]]
    set_shared: SetShared
    # We joined a channel.
    join: Callable[[ChannelKey], Awaitable[None]]
    leave: LeaveChannel
    name_channel: NameChannel
    overviews: ReadOverviews
    recent: ReadRecent
    direct_questions: ReadQuestions
    preview: PreviewLink
    renew_links: RenewLinks
    move: MoveChannel
    moves: ReadMoves
    stop: StopQuestions
    # A stream is that of the question of a message key; False: of another one.
    take: Callable[[Platform, str, dict[str, Any]], Awaitable[bool]]


class JoinAt(Protocol):
    """Keeps that we joined a channel of a platform on which more than its key reaches it."""

    async def __call__(
        self, key: ChannelKey, name: str | None, *, is_direct: bool | None, address: dict[str, Any]
    ) -> None:
        """Keep it; ``address`` is as of a message, and ``name`` and ``is_direct`` are, too."""


# Draws what a figure's ``image`` link opens.
#
# It raises ``LinkError`` where that opens nothing any more, ``storage.errors.DocumentError`` where the page
# cannot be drawn, and ``storage.errors.InfrastructureError`` or OSError where nobody can draw it just now.
DrawFigure = Callable[[AnswerFigure], Awaitable[PageImage]]


class Announcer(Protocol):
    """One platform's way to speak first; ``place`` is what that platform made of a channel."""

    def announcing_place(self, channel: Channel, address: dict[str, Any] | None) -> dict[str, Any] | None:
        """Where in a channel it would speak; None while that is not known.

        Args:
            channel: the channel.
            address: where the channel's newest question came from, if there ever was one.
        """

    async def announce(self, place: dict[str, Any], announcement: Announcement) -> None:
        """Post one message that nobody asked for; below the message whose address a place has as ``below``.

        Raises:
            bot.core.errors.ChannelClosed: never in this channel.
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def has_announced(self, place: dict[str, Any], announcement: str, since: datetime) -> bool | None:
        """True if the announcement of this id was posted there; None from a platform that cannot search.

        Raises:
            bot.core.errors.DeliveryError: the platform did not let us search.
        """


class Expiring(Protocol):
    """Keeps things for a while only."""

    async def delete_expired(self) -> int:
        """Erase some of what has been kept long enough; returns how much that was.

        Raises:
            storage.errors.DatabaseUnavailable: nothing can be erased just now.
        """


class Generator(Protocol):
    """A language model."""

    async def draft(
        self,
        question: AnalyzedQuestion,
        evidence: Sequence[Evidence],
        *,
        stands: Sequence[str] = (),
        on_claim: OnClaim | None = None,
    ) -> Draft:
        """Answer from numbered ``evidence`` alone.

        Args:
            question: what is asked.
            evidence: what may be quoted.
            stands: proven sentences of an earlier draft; only what they do not say is wanted.
            on_claim: called with each complete sentence; those before an error belong to no draft.

        Raises:
            bot.core.errors.ModelError: the model failed, was cut off or wrote nothing usable.
        """

    async def write(self, instructions: str, request: str, *, seconds: float, tokens: int) -> Reply:
        """Return a short text, whole.

        Raises:
            bot.core.errors.ModelError: it failed, was late or was cut off.
        """


class SentenceJudge(Protocol):
    """Judges whether sentences mean what their sources say."""

    async def judge(self, question: AnalyzedQuestion, sentences: Sequence[QuotedSentence]) -> Judgement:
        """Judge all sentences of an answer at once, from the question and their sources alone.

        Raises:
            bot.core.errors.ModelError: there is no verdict on each of them.
        """


class AnswerListener(Protocol):
    """Shows a person who waits how far their answer has come."""

    def show(self, text: str) -> None:
        """The sentences that are proven so far, with their [n]; the answer's text will begin with them.

        Returns at once, whatever becomes of it.
        """


class Retriever(Protocol):
    """Finds passages in one channel."""

    async def retrieve(self, question: Question) -> Retrieval:
        """Return the best candidates of the question's channel, best first.

        Raises:
            storage.errors.InfrastructureError: an engine is down or late.
        """


class QuestionAnswering(Protocol):
    """Answers questions."""

    async def answer(self, question: Question, listener: AnswerListener | None = None) -> Answer:
        """Return the answer a person gets; faults of engines and models end in one that says so."""


class NoteWriter(Protocol):
    """Writes notes to threads that follow a page; a note names subscription, version and page."""

    async def due(self, note: Mapping[str, int]) -> TenantName | None:
        """Return the channel of the page's document; None: there is nothing to tell.

        Raises:
            storage.errors.InfrastructureError: nobody knows just now.
        """

    async def write(self, note: Mapping[str, int]) -> Answer:
        """What the thread is told.

        Raises:
            storage.errors.InfrastructureError: what was read is not there just now.
        """


# Takes the file of a message, once; None: it is read, and the words beside it can be asked.
#
# It raises ``FileBeingRead`` until then.
TakeUpload = Callable[[InboxItem], Awaitable[Answer | None]]


class Messenger(Protocol):
    """One platform's way to reply; ``address`` and ``message`` are what that platform stored."""

    async def place(
        self, address: dict[str, Any], language: Language, *, queued: str = "", asked: str = ""
    ) -> dict[str, Any]:
        """Post a placeholder where the question was asked and return what names it.

        A rate limit is not waited for: whoever waits here holds others up.

        Args:
            address: where that is.
            language: what it says is in.
            queued: the sentence of a question that others are answered before; '': it is searched for now.
            asked: its words, where a platform names a conversation after its first question.

        Raises:
            bot.core.errors.DeliveryUnclear: nobody knows whether it was posted.
            bot.core.errors.DeliveryError: it was not.
        """

    async def find_placeholder(
        self, address: dict[str, Any], others: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any] | None:
        """What names the placeholder that an earlier ``place`` may have posted for this very question.

        Asked when nobody knows whether it did. A platform that cannot search returns None: there a
        second placeholder may appear. ``others``: what names messages of other questions of the thread.

        Raises:
            bot.core.errors.DeliveryError: the platform did not let us search.
        """

    async def show(self, address: dict[str, Any], message: dict[str, Any], text: str) -> None:
        """Write the first sentences of an answer over the placeholder, and that more is to come.

        Tried once: it is a decoration.

        Raises:
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def deliver(
        self, address: dict[str, Any], message: dict[str, Any], answer: Answer, keep: Keep
    ) -> None:
        """Replace the placeholder with the answer; repeating it changes nothing a person sees.

        Whatever is posted beside the placeholder is handed to ``keep`` before and after, so that no later
        try posts it again.

        Raises:
            storage.errors.LeaseLost: as ``keep``.
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """

    async def illustrate(
        self, address: dict[str, Any], message: dict[str, Any], answer: Answer, hold: Hold
    ) -> None:
        """Add its figures to an answer that is delivered, where the platform wants their pictures from us.

        What fails costs a picture and nothing else. Repeating it changes nothing a person sees.

        Raises:
            storage.errors.LeaseLost: as ``hold``, which is asked before anything is shown.
        """

    async def retract(self, address: dict[str, Any], message: dict[str, Any], answer: Answer) -> None:
        """Write over a delivered answer that it was erased; its pictures and its card go, too.

        Raises: as ``revise``.
        """

    async def revise(
        self,
        address: dict[str, Any],
        message: dict[str, Any],
        answer: Answer,
        changes: Sequence[SourceChange],
    ) -> None:
        """Write over a delivered answer what became of its sources; no new message appears.

        Raises:
            bot.core.errors.ChannelClosed: this message can never be updated again.
            bot.core.errors.DeliveryError: the platform refused, or did not answer.
        """
