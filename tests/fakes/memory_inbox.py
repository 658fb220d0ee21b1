"""An in-memory inbox for tests of platform adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, cast

from bot.chat.chat_service import ChatService
from bot.chat.conversation.feedback import REASONS, AnsweredQuestion, FeedbackReply
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Language
from bot.core.ports import (
    ChannelOverview,
    IncomingMessage,
    LinkPreview,
    Messenger,
    StopRequest,
    StoredAnswer,
)
from bot.core.wording import reply_words
from bot.uploads.upload_intake import UploadPolicy
from storage.chat.feedback import FeedbackVerdict
from storage.chat_models import RecentQuestion, WithdrawnItem
from storage.errors import DocumentError
from storage.models import ChannelKey, PageImage, TenantName


class Door(Protocol):
    """A platform adapter, as far as an answer needs it."""

    @property
    def messenger(self) -> Messenger:
        """Messenger of this platform."""


@dataclass
class MemoryFeedback:
    """Records feedback in memory."""

    said: list[tuple[str, tuple[str, str], FeedbackVerdict, int | None]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    # Raised instead of recording.
    failure: Exception | None = None

    async def question_of(
        self, key: ChannelKey, message_key: str, language: Language
    ) -> AnsweredQuestion | None:
        """Return a question for any message."""
        return AnsweredQuestion(1, message_key, language)

    async def question_of_reply(self, key: ChannelKey, message: str) -> AnsweredQuestion | None:
        """Return a question for any reply except "lost"."""
        return None if message == "lost" else AnsweredQuestion(1, message)

    async def take(
        self,
        asked: AnsweredQuestion | None,
        person: tuple[str, str],
        verdict: FeedbackVerdict,
        *,
        page: int | None = None,
        comment: str = "",
        language: Language = Language.ENGLISH,
    ) -> FeedbackReply:
        """Offer two pages for a bad answer."""
        if self.failure:
            raise self.failure
        if asked is None:
            return FeedbackReply("It is not there any more.")
        self.said.append((asked.id, person, verdict, page))
        self.comments.append(comment)
        if verdict is not FeedbackVerdict.BAD or comment:
            return FeedbackReply("Thank you.")
        reasons = [(one, one.value) for one in REASONS]
        return FeedbackReply("What was wrong?", reasons, ["Page 1", "Page 2"], "The right page is …")

    async def why(self, asked: AnsweredQuestion | None, language: Language = Language.ENGLISH) -> str:
        """Return a dummy explanation."""
        return f"Because of {asked.id}." if asked else "It is not there any more."


def service_with(**calls: Any) -> ChatService:
    """Return a service that offers these calls only."""
    return cast("ChatService", SimpleNamespace(**calls))


async def take_any(message: dict[str, Any]) -> bool:
    """Return True: no other question has claimed the message."""
    return True


@dataclass
class MemoryInbox:
    """Stores a message once, however many events deliver it; with an adapter it answers them."""

    answer_to: Callable[[IncomingMessage], Answer]
    door: Door | None = None
    kept: dict[str, IncomingMessage] = field(default_factory=dict)
    arrivals: int = 0
    # Raised instead of storing.
    failure: Exception | None = None
    # Blocks storing until it is set.
    gate: asyncio.Event | None = None
    joined: list[ChannelKey] = field(default_factory=list)
    left: list[ChannelKey] = field(default_factory=list)
    moved: list[tuple[TenantName, TenantName]] = field(default_factory=list)
    # Raised instead of returning the moved channels.
    moves_failure: Exception | None = None
    # Message keys.
    stopped: list[str] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    # Channel names by conversation.
    names: dict[str, str] = field(default_factory=dict)
    feedback: MemoryFeedback = field(default_factory=MemoryFeedback)
    # No person can be asked.
    handoffs: None = None
    answering: list[asyncio.Task[None]] = field(default_factory=list)
    uploads: UploadPolicy = field(default_factory=lambda: UploadPolicy("off"))

    async def receive(self, message: IncomingMessage) -> bool:
        """Store a message; with an adapter, answer it in the background."""
        self.arrivals += 1
        if self.gate:
            await self.gate.wait()
        if self.failure:
            raise self.failure
        if message.message_key in self.kept:
            return False
        if message.is_unaddressed and not self._takes_part(message):
            return False
        self.kept[message.message_key] = message
        if self.door:
            self.answering.append(asyncio.create_task(self._answer(self.door, message)))
        return True

    @property
    def service(self) -> ChatService:
        """Return it as the service behind a platform."""
        return cast("ChatService", self)

    async def draw(self, figure: AnswerFigure) -> PageImage:
        """Raise DocumentError: no page can be rendered here."""
        raise DocumentError(f"page {figure.page} is damaged and cannot be drawn")

    def accepts_files(self, message: IncomingMessage) -> bool:
        """True if a file of this message may become a document."""
        return self.uploads.accepts(message)

    async def stop(self, request: StopRequest) -> bool:
        """Record which known questions were stopped."""
        if self.failure:
            raise self.failure
        known = [
            one
            for one in self.kept.values()
            if request.key.tenant == one.key.tenant
            and (one.thread == request.thread or one.message_key == request.message_key)
        ]
        self.stopped += [one.message_key for one in known if request.covers(one.address)]
        return bool(self.stopped)

    async def claim_message(self, message_key: str, message: dict[str, Any]) -> bool:
        """Return True: no other question has claimed the message."""
        return await take_any(message)

    async def move(self, old: ChannelKey, new: ChannelKey) -> None:
        """Record that a channel has another id."""
        if self.failure:
            raise self.failure
        self.moved.append((old.tenant, new.tenant))

    async def moves(self) -> Sequence[tuple[TenantName, TenantName]]:
        """Return the recorded moves."""
        if self.moves_failure:
            raise self.moves_failure
        return self.moved

    async def overviews(self, tenants: Collection[TenantName]) -> Sequence[ChannelOverview]:
        """Return an overview of one document per channel."""
        return [ChannelOverview(one, one, f"one document of {one}", ()) for one in sorted(tenants)]

    async def recent_of(
        self, user: str, tenants: Collection[TenantName], limit: int
    ) -> Sequence[RecentQuestion]:
        """Return the stored questions of a person."""
        asked = [one for one in self.kept.values() if one.address["user"] == user]
        return [RecentQuestion(one.key.tenant, one.text) for one in asked if one.key.tenant in tenants][
            :limit
        ]

    async def direct_questions(self, installation: str) -> Sequence[str]:
        """Return one sample question."""
        return ["What is in the library?"]

    async def preview(self, url: str) -> LinkPreview | None:
        """Return a preview; the link's last path segment is its channel."""
        return LinkPreview(TenantName(url.rpartition("/")[2]), "p. 1 · Rules", "Daily & <nightly>.")

    async def has_ended(self, url: str) -> bool:
        """Return True for a URL that says so."""
        return url.endswith("ended")

    async def renew_links(self, channel_id: int, question: str, language: Language) -> Answer:
        """Return an answer with one link, which names its question."""
        text = f"{reply_words(language).links_renewed(question=question)}\n[1] “2:00 AM”"
        url = f"https://kept.example/v/{channel_id}-{question}"
        cited = Citation(1, "Rules", "rules.pdf", 1, "2:00 AM", (), url, version_id=1)
        return Answer(AnswerState.CHAT, text, (cited,), language=language)

    async def edit(self, message: IncomingMessage) -> bool:
        """Update the text of a known question."""
        known = self.kept.get(message.message_key)
        if known is None or known.text == message.text:
            return False
        self.kept[message.message_key] = message
        return True

    async def withdraw(self, message_key: str) -> WithdrawnItem | None:
        """Delete a question."""
        known = self.kept.pop(message_key, None)
        return WithdrawnItem(known.address, None, is_posting=False) if known else None

    async def answer_of(self, message_key: str) -> StoredAnswer | None:
        """Return the answer to a known question."""
        known = self.kept.get(message_key)
        return StoredAnswer(known.address, self.answer_to(known)) if known else None

    async def set_shared(self, message_key: str, *, is_shared: bool) -> bool:
        """Record what was shared."""
        if (message_key in self.shared) is is_shared:
            return False
        (self.shared.add if is_shared else self.shared.discard)(message_key)
        return True

    async def join(self, key: ChannelKey, name: str | None = None, **_: Any) -> None:
        """Record that the bot joined a channel."""
        if self.failure:
            raise self.failure
        self.joined.append(key)

    async def leave(self, key: ChannelKey) -> None:
        """Record that the bot left a channel."""
        self.left.append(key)

    async def name_channel(self, key: ChannelKey, name: str) -> None:
        """Record a channel's name."""
        self.names[key.conversation] = name

    def _takes_part(self, message: IncomingMessage) -> bool:
        place = (message.key, message.thread)
        return any((one.key, one.thread) == place for one in self.kept.values())

    async def _answer(self, door: Door, message: IncomingMessage) -> None:
        placed = await door.messenger.post_placeholder(message.address, Language.ENGLISH)

        async def keep(message: dict[str, Any]) -> None:
            """Ignore it: the message is not needed again."""

        await door.messenger.deliver(message.address, placed, self.answer_to(message), keep)
