"""All that a chat platform may call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from bot.chat.commands.link_renewal import LinkRenewal
from bot.chat.conversation.answer_json import answer_from_json
from bot.chat.conversation.conversation import Conversation
from bot.chat.conversation.feedback import AnswerFeedback
from bot.chat.conversation.handoffs import Handoffs
from bot.chat.notifications.welcome import ChannelOverviews
from bot.core.models import Answer, Language
from bot.core.ports import (
    ChannelOverview,
    DrawFigure,
    IncomingMessage,
    LinkPreview,
    StopRequest,
    StoredAnswer,
)
from storage.chat.channels import Channels, MoveOutcome
from storage.chat.inbox import Inbox
from storage.chat.notifications import Notices
from storage.chat_models import RecentQuestion, WithdrawnItem
from storage.models import ChannelKey, Platform, TenantName

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChatService:
    """The service behind one platform: what it was told is stored durably when a call returns.

    Every call may raise ``storage.errors.DatabaseUnavailable``; nothing was changed then, so the platform's
    event must not be acknowledged. Keys come from verified envelopes only; a key that is no possible channel
    raises ``InvalidTenant``.
    """

    platform: Platform
    conversation: Conversation
    inbox: Inbox
    channels: Channels
    notices: Notices
    channel_overviews: ChannelOverviews
    renewal: LinkRenewal
    # Stores feedback on answers, and explains them.
    feedback: AnswerFeedback
    # Hands questions to people; None: switched off.
    handoffs: Handoffs | None
    # Resolves a URL; None if it is not one of our links or is no longer valid.
    preview: Callable[[str], Awaitable[LinkPreview | None]]
    # True if a URL is one of our links and no longer valid.
    has_ended: Callable[[str], Awaitable[bool]]
    draw: DrawFigure
    # True if a file of this message may become a document.
    accepts_files: Callable[[IncomingMessage], bool]

    async def receive(self, message: IncomingMessage) -> bool:
        """Store a message; False if it is a duplicate or not addressed to the bot."""
        return await self.conversation.receive(message)

    async def edit(self, message: IncomingMessage) -> bool:
        """Answer an edited question again; False if it is unknown or not changed."""
        return await self.conversation.edit(message)

    async def withdraw(self, message_key: str) -> WithdrawnItem | None:
        """Erase the question in a deleted message, with its answer; None if it was none."""
        return await self.inbox.withdraw(self.platform, message_key)

    async def claim_message(self, message_key: str, message: dict[str, Any]) -> bool:
        """Assign a chat message to a question; False if another question has it."""
        return await self.inbox.take_message(self.platform, message_key, message)

    async def stop(self, request: StopRequest) -> bool:
        """Cancel questions in progress; False if there are none."""
        return await self.conversation.stop(request)

    async def answer_of(self, message_key: str) -> StoredAnswer | None:
        """Return the answer to the question with this key, while it is retained."""
        kept = await self.inbox.answer_of(self.platform, message_key)
        return StoredAnswer(kept[0], answer_from_json(kept[1])) if kept else None

    async def set_shared(self, message_key: str, *, is_shared: bool) -> bool:
        """Store whether a private answer was shared; False if nothing changed, or it is unknown."""
        return await self.inbox.set_shared(self.platform, message_key, is_shared=is_shared)

    async def join(
        self,
        key: ChannelKey,
        name: str | None = None,
        *,
        is_direct: bool | None = None,
        address: dict[str, Any] | None = None,
    ) -> None:
        """Record that the bot was added to a channel, and that it gets a welcome; arguments as in a message.

        ``address``: for channels that cannot be reached by their key alone.
        """
        channel = await self.channels.ensure(key, name, is_direct=is_direct)
        if address is not None:
            await self.channels.set_address(channel, address)
        await self.notices.welcome(channel.id)

    async def leave(self, key: ChannelKey) -> None:
        """Record that a channel was deleted, or that the bot was removed from it."""
        await self.channels.leave(key)

    async def name_channel(self, key: ChannelKey, name: str) -> None:
        """Store a channel's display name."""
        await self.channels.ensure(key, name)

    async def move(self, old: ChannelKey, new: ChannelKey) -> None:
        """Record that a channel has a new id."""
        outcome = await self.channels.move(old, new)
        if outcome is MoveOutcome.MOVED:
            log.info("channel %s has the new platform id %s", old.tenant, new.tenant)
        elif outcome is MoveOutcome.OCCUPIED:
            log.warning(
                "channel %s got the id of %s, which already has documents: kept separate, questions use %s; "
                "move the other files to its folder",
                *(old.tenant, new.tenant, new.tenant),
            )

    async def moves(self) -> Sequence[tuple[TenantName, TenantName]]:
        """Return (old tenant, new tenant) of moved channels, newest last."""
        return await self.channels.moves(self.platform)

    async def overviews(self, tenants: Collection[TenantName]) -> Sequence[ChannelOverview]:
        """Return overviews of channels that the caller may show; those without documents are left out."""
        return await self.channel_overviews.read(tenants)

    async def recent_of(
        self, user: str, tenants: Collection[TenantName], limit: int
    ) -> Sequence[RecentQuestion]:
        """Return a person's latest questions about channels that the caller may show, newest first."""
        return await self.inbox.recent_of(user, tenants, limit)

    async def direct_questions(self, installation: str) -> Sequence[str]:
        """Return tested questions about the documents that an installation's direct chats search."""
        return await self.channel_overviews.direct_questions(self.platform, installation)

    async def renew_links(self, channel_id: int, question: str, language: Language) -> Answer:
        """Return an answer's sources with fresh links; the caller has checked that they may be shown."""
        return await self.renewal.renew(channel_id, question, language)
