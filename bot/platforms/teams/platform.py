"""Teams in the list of platforms; what needs its SDK is imported when it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bot.chat.chat_platform import PlatformSpec
from bot.chat.chat_service import ChatService
from bot.core.errors import DeliveryError
from bot.health.findings import Finding, HealthCheck, fail, ok, warn
from bot.platforms.teams.activities import TEAMS
from bot.platforms.teams.address import TeamsAddress
from bot.settings import BotSettings
from storage.errors import SettingsError, docs_url
from storage.stores import Stores

if TYPE_CHECKING:
    from bot.health.installation import Installation
    from bot.platforms.teams.adapter import TeamsAdapter
    from bot.platforms.teams.connector import AppCredentials

Json = Mapping[str, Any]

TOKEN_SECONDS = 4.0
DOCS = f"{docs_url('troubleshooting.md')}#teams-gives-no-token"
FIX = (
    "check MicrosoftAppId, MicrosoftAppPassword and MicrosoftAppTenantId; secrets expire: "
    f"{docs_url('teams.md')}"
)


def open_teams(settings: BotSettings, service: ChatService, _: Stores | None = None) -> TeamsAdapter | None:
    """Return the adapter, None if it is not configured.

    Raises:
        SettingsError: incomplete configuration, or development mode reachable from outside.
    """
    if not (settings.teams_development or settings.teams_app_id or settings.teams_app_password):
        return None
    from bot.platforms.teams.adapter import TeamsAdapter

    return TeamsAdapter(settings, service)


def _is_remote(settings: BotSettings) -> bool:
    # The Agents Playground's browser runs on this machine.
    return bool(settings.teams_app_id and not settings.teams_development)


async def check_teams(installation: Installation) -> Finding:
    """Check that Microsoft issues the bot's token."""
    from bot.platforms.teams.connector import app_credentials

    bot = installation.settings.bot
    if bot.teams_development:
        fix = "remove FOOTNOTE_TEAMS_DEVELOPMENT, except for the Agents Playground"
        return warn("messages are accepted without tokens", fix, DOCS)
    if not (bot.teams_app_id or bot.teams_app_password):
        return ok("not connected")
    try:
        return await check_app_token(app_credentials(bot))
    except SettingsError as error:
        return fail(str(error), FIX, DOCS)


async def check_app_token(credentials: AppCredentials) -> Finding:
    """Check that Microsoft issues a token for these credentials."""
    from aiohttp import ClientSession, ClientTimeout

    try:
        async with ClientSession(timeout=ClientTimeout(total=TOKEN_SECONDS)) as session:
            await credentials.token(session)
    except DeliveryError as error:
        return fail(str(error), FIX, DOCS)
    return ok("Microsoft issues the bot's token")


def message_url(address: Json, message: Json) -> str | None:
    """Return a message's permalink; None for a private answer, which is no message."""
    if "id" not in message:
        return None
    conversation, _, root = TeamsAddress.from_json(address).conversation.partition(";messageid=")
    within = f"?parentMessageId={quote(root)}" if root else '?context={"contextType":"chat"}'
    place = f"{quote(conversation, safe='')}/{quote(str(message['id']), safe='')}"
    return f"https://teams.microsoft.com/l/message/{place}{quote(within, safe='?=')}"


TEAMS_PLATFORM = PlatformSpec(
    TEAMS,
    "Teams",
    open=open_teams,
    route="teams_messages",
    not_ready="Microsoft's signing keys, which verify Teams messages, cannot be fetched",
    is_remote=_is_remote,
    health_check=lambda installation: HealthCheck(TEAMS, partial(check_teams, installation), DOCS),
    clock_url=lambda one: "https://login.microsoftonline.com" if _is_remote(one) else None,
    message_url=message_url,
)
