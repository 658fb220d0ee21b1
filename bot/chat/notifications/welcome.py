"""Welcomes for channels that the bot joined, and overviews of a person's channels.

Both show the documents or how to add some, and suggested questions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from bot.answers.understanding.channel_folders import ChannelFolders
from bot.answers.understanding.direct_libraries import DirectLibraries
from bot.chat.commands.document_list import DocumentList
from bot.chat.notifications import notification_wording
from bot.chat.notifications.suggested_questions import MAX_OFFERED
from bot.core.models import Language
from bot.core.ports import Announcement, ChannelOverview
from bot.core.wording import reply_words
from storage.chat.channels import Channels
from storage.chat.notifications import LIVE, Notices
from storage.chat_models import Notice
from storage.documents.catalog import Catalog
from storage.models import Channel, Platform, TenantName

# Documents whose headings are read if too few questions are stored.
MAX_DOCUMENTS_READ = 2
# Channels in one person's overview.
MAX_CHANNELS = 10
# Newest versions searched for stored suggested questions.
VERSIONS_READ = 50

log = logging.getLogger(__name__)

# Stores the questions of new versions.
StoreQuestions = Callable[[Sequence[Notice]], Awaitable[None]]


class WelcomeBuilder:
    """Builds welcomes; ``notifier.py`` posts each once."""

    def __init__(
        self,
        notices: Notices,
        catalog: Catalog,
        folders: ChannelFolders,
        store_questions: StoreQuestions,
        libraries: DirectLibraries,
    ) -> None:
        self._libraries = libraries
        self._notices = notices
        self._catalog = catalog
        self._folders = folders
        self._store_questions = store_questions

    async def prepare(self, batch: str, target: Channel) -> Announcement:
        """Return the welcome with id ``batch``; create the folder of a channel that no folder feeds.

        Raises:
            storage.errors.InfrastructureError: a backend is down; nothing was announced.
        """
        words, lead = reply_words(Language.ENGLISH), notification_wording.WELCOME_LEAD
        asked = target
        if target.is_direct:  # a direct chat searches the library, if there is one
            library = await self._libraries.library_for(target.platform, target.installation)
            asked = library or target
            lead = notification_wording.welcome_direct(has_library=library is not None)
        documents = await self._catalog.active_documents(asked.id)
        if not documents:
            folder = "" if target.is_direct else await self._folders.make(target)
            return Announcement(batch, lead, (), (words.no_documents(asked, folder),))
        is_live = any(one.state == "live" for one in documents)
        return Announcement(
            batch,
            lead,
            (),
            (DocumentList(words, documents).write(),),
            questions=await self._questions(asked) if is_live else (),
        )

    async def _questions(self, target: Channel) -> tuple[str, ...]:
        """Return at most three suggested questions; read headings if too few are stored."""
        offered = await _offered(self._notices, target)
        if len(offered) < MAX_OFFERED:
            unread = [
                one
                for one in await self._notices.recent(target.id, VERSIONS_READ)
                if one.kind == LIVE and one.questions is None
            ]
            await self._store_questions(unread[:MAX_DOCUMENTS_READ])
            offered = await _offered(self._notices, target)
        return offered


class ChannelOverviews:
    """Reads overviews of existing channels; callers check the person's permissions."""

    def __init__(
        self, channels: Channels, libraries: DirectLibraries, catalog: Catalog, notices: Notices
    ) -> None:
        self._channels = channels
        self._libraries = libraries
        self._catalog = catalog
        self._notices = notices

    async def read(self, tenants: Collection[TenantName]) -> Sequence[ChannelOverview]:
        """Return overviews of at most ten of these channels, those with documents, by name.

        Raises:
            storage.errors.InfrastructureError: the database cannot be reached.
        """
        found: list[ChannelOverview] = []
        for channel in await self._channels.of_tenants(tenants):
            if len(found) < MAX_CHANNELS and (overview := await self._overview(channel)):
                found.append(overview)
        return found

    async def direct_questions(self, platform: Platform, installation: str) -> Sequence[str]:
        """Return at most three suggested questions of the library that direct chats search.

        Raises:
            storage.errors.InfrastructureError: the database cannot be reached.
        """
        library = await self._libraries.library_for(platform, installation)
        return await _offered(self._notices, library) if library else ()

    async def _overview(self, channel: Channel) -> ChannelOverview | None:
        documents = await self._catalog.active_documents(channel.id)
        if not documents:
            return None
        listed = DocumentList(reply_words(Language.ENGLISH), documents).write()
        return ChannelOverview(channel.tenant, channel.name, listed, await _offered(self._notices, channel))


async def _offered(notices: Notices, channel: Channel) -> tuple[str, ...]:
    """Return at most three stored questions that the channel's documents answer."""
    stored = await notices.sample_questions(channel.id, VERSIONS_READ)
    return tuple(dict.fromkeys(text for _, text in stored))[:MAX_OFFERED]
