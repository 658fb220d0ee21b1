"""Resolves which channels a direct message searches: a library and, by a setting, the asker's channels.

The platform is asked for memberships at every question; nothing is cached. Someone who has left a channel is
shown nothing of it any more: not in a follow-up, a list, the sources of an answer or its buttons.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol

from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.answers.understanding.question_terms import language_of
from bot.core.errors import MembershipsUnknown
from bot.core.models import Answer, AnswerState, Language, MemberChannel, Question
from bot.core.wording import reply_words
from storage.chat.channels import Channels
from storage.chat.thread_memory import ThreadMemory
from storage.chat_models import InboxItem, Turn
from storage.models import Channel, Platform, TenantName
from storage.task_group import gather_or_cancel

# Maximum number of channels with documents that one question searches, the first by name.
MAX_MEMBER_CHANNELS = 20

log = logging.getLogger(__name__)


class MembershipLookup(Protocol):
    """Channel memberships, read from the platform at the time of the call."""

    async def channels_of_asker(self, address: Mapping[str, Any]) -> Mapping[TenantName, str]:
        """Return the channels of the person who asked at this address, with their display names.

        Raises:
            bot.core.errors.MembershipsUnknown: the platform does not return them.
        """

    async def may_read(self, address: Mapping[str, Any], tenants: Collection[TenantName]) -> bool:
        """True if the recipient at this address is in these channels and the one asked in.

        Anything that is not a channel of this platform, such as a library, is open to everyone.

        Raises:
            bot.core.errors.MembershipsUnknown: the platform does not return them.
        """


class DirectChats:
    """Builds the questions of direct chats, and shows answers to channel members only."""

    def __init__(
        self,
        channels: Channels,
        libraries: DirectLibraries,
        memory: ThreadMemory,
        memberships: Mapping[Platform, MembershipLookup] | None = None,
        *,
        ask_channels: bool = False,
    ) -> None:
        """Create the service.

        Args:
            memberships: one per platform that returns memberships; more may be added later.
            ask_channels: on these platforms, search the asker's channels in addition to the library.
        """
        self._channels = channels
        self._libraries = libraries
        self._memory = memory
        self._memberships = {} if memberships is None else memberships
        self._ask_channels = ask_channels

    async def question(self, item: InboxItem, chat: Question) -> Question | Answer:
        """Return the question for the documents, or a reply that says why none are searched.

        Args:
            item: as it was received.
            chat: the question in its direct chat, without history.

        Raises:
            storage.errors.DatabaseUnavailable: the database is unavailable.
        """
        memberships = self._memberships.get(item.platform) if self._ask_channels else None
        library = await self._libraries.library_for(item.platform, chat.channel.installation)
        if memberships is None:
            history = await self._recall(item, library)
            question = replace(chat, history=history)
            return replace(question, channel=library, chat=chat.channel) if library else question
        words = reply_words(language_of(item.text) or Language.ENGLISH)
        try:
            names = await memberships.channels_of_asker(item.address)
        except MembershipsUnknown as error:
            log.warning("memberships unavailable, nothing searched: question=%d: %s", item.id, error)
            return Answer(AnswerState.FAILED, words.memberships_unknown, language=words.language)
        known = await self._channels.with_documents(names.keys(), MAX_MEMBER_CHANNELS)
        own = sorted((_named(one, names[one.tenant]) for one in known), key=lambda one: one.name)
        asked = [*([library] if library else []), *own]
        if not asked:
            return Answer(AnswerState.CHAT, words.no_member_channels, language=words.language)
        histories = await gather_or_cancel(*(self._recall(item, one) for one in asked))
        members = tuple(MemberChannel(*pair) for pair in zip(asked, histories, strict=True))
        return replace(chat, channel=asked[0], chat=chat.channel, history=histories[0], members=members)

    async def may_read(self, item: InboxItem, tenants: Collection[TenantName]) -> bool:
        """True if the asker may be shown content of these channels and of the one asked in.

        Raises:
            MembershipsUnknown: the platform does not return memberships; show nothing.
        """
        memberships = self._memberships.get(item.platform)
        return memberships is None or await memberships.may_read(item.address, tenants)

    async def refusal(self, item: InboxItem, tenants: Collection[TenantName]) -> Answer | None:
        """Return the reply that replaces content the asker may not be shown; None if they may."""
        words = reply_words(language_of(item.text) or Language.ENGLISH)
        try:
            may_read = await self.may_read(item, tenants)
        except MembershipsUnknown as error:
            log.warning("memberships unavailable, answer withheld: question=%d: %s", item.id, error)
            return Answer(AnswerState.FAILED, words.memberships_unknown, language=words.language)
        return None if may_read else Answer(AnswerState.CHAT, words.left_channel, language=words.language)

    async def _recall(self, item: InboxItem, asked: Channel | None) -> tuple[Turn, ...]:
        """Return the chat's earlier turns about the documents of one channel."""
        return await self._memory.recall(
            item.channel_id, item.thread, item.received_at, documents_of=asked.id if asked else None
        )


def _named(channel: Channel, name: str) -> Channel:
    """Give a channel without a name its display name on the platform."""
    return replace(channel, name=name) if channel.name == channel.tenant else channel
