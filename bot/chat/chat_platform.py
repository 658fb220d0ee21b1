"""Interface of a chat platform; ``bot/platforms/registry.py`` lists the platforms that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bot.chat.chat_service import ChatService
from bot.chat.conversation.direct_chats import MembershipLookup
from bot.core.ports import Announcer, Messenger
from bot.settings import BotSettings
from bot.uploads.file_host import FileHost
from storage.models import Platform, TenantName
from storage.stores import Stores

if TYPE_CHECKING:
    from aiohttp import web

    from bot.health.findings import HealthCheck
    from bot.health.installation import Installation

Json = Mapping[str, Any]


class ChatMessenger(Messenger, Announcer, Protocol):
    """Posts all messages on one platform."""


class ChatPlatform(Protocol):
    """A connected chat platform: turns its verified events into calls of a ``ChatService``."""

    @property
    def messenger(self) -> ChatMessenger:
        """Posts answers and announcements."""

    @property
    def memberships(self) -> MembershipLookup | None:
        """Looks up who is in which channel; None if the platform does not say."""

    @property
    def files(self) -> FileHost | None:
        """Downloads files of messages; None if messages have none."""

    def add_routes(self, app: web.Application) -> None:
        """Register HTTP routes."""

    async def start(self) -> None:
        """Start receiving events.

        Raises:
            SettingsError: the platform refuses the credentials.
        """

    async def is_ready(self) -> bool:
        """True if events can arrive."""

    async def stop(self) -> None:
        """Stop receiving events; what was committed stays in the inbox."""

    async def aclose(self) -> None:
        """Close connections, after the last message was sent."""


@dataclass(frozen=True, slots=True)
class PlatformSpec:
    """A chat platform, connected or not; its SDK is imported by ``open`` and ``health_check`` only."""

    # Stored with channels and messages; also in metrics, readiness and the ids of people.
    name: Platform
    # Display name.
    label: str
    # Returns None if the settings do not configure it; raises SettingsError if they are incomplete.
    open: Callable[[BotSettings, ChatService, Stores], ChatPlatform | None]
    # HTTP route of its events; 401 and 403 mean an invalid signature or token.
    route: str
    # Reason shown while a connected platform is not ready.
    not_ready: str
    # True if its people open links from other machines.
    is_remote: Callable[[BotSettings], bool]
    # Check of its credentials for ``footnote doctor``.
    health_check: Callable[[Installation], HealthCheck]
    # URL of one of its servers, whose clock is compared with ours; None if it is not connected.
    clock_url: Callable[[BotSettings], str | None] = lambda _: None
    # True if any organisation may install the bot.
    is_shared: Callable[[BotSettings], bool] = lambda _: False
    # Permalink of a message by (reply address, message); None if it has none, as for an ephemeral message.
    message_url: Callable[[Json, Json], str | None] = lambda *_: None
    # Link to a channel; None if there is none.
    channel_url: Callable[[TenantName], str | None] = lambda _: None
    # Manifest of its app for a public URL, '' without one.
    manifest: Callable[[str], str] = lambda _: ""
