"""The list of chat platforms: the one place outside their folders that names them."""

from __future__ import annotations

from bot.chat.chat_platform import PlatformSpec
from bot.loopback import is_loopback_url
from bot.platforms.slack.platform import SLACK_PLATFORM
from bot.platforms.teams.platform import TEAMS_PLATFORM
from bot.settings import BotSettings
from storage.chat.citations import ShownIn
from storage.models import Channel, Platform

PLATFORMS: tuple[PlatformSpec, ...] = (
    SLACK_PLATFORM,
    TEAMS_PLATFORM,
)
# Platform of each HTTP route that takes signed events.
SIGNED_ROUTES: dict[str, str] = {one.route: one.name for one in PLATFORMS}


def shared_platforms(settings: BotSettings) -> frozenset[Platform]:
    """Return the platforms on which any organisation may install the bot."""
    return frozenset(one.name for one in PLATFORMS if one.is_shared(settings))


def loopback_links_warning(settings: BotSettings, public_url: str) -> str | None:
    """Return a warning if chats get links that open on this machine only, else None."""
    chats = [one.label for one in PLATFORMS if one.is_remote(settings)]
    if not chats or not is_loopback_url(public_url):
        return None
    return (
        f"links in {' and '.join(chats)} lead to {public_url}, which opens on this machine only: set "
        "FOOTNOTE_PUBLIC_URL to the address under which people's browsers reach it"
    )


def renewal_urls(channel: Channel, shown: ShownIn | None) -> dict[str, str | None]:
    """Return the values of an ended link's page: where members of the channel get a new link."""
    one = next((one for one in PLATFORMS if one.name == channel.platform), None)
    if one is None:
        return {}
    answer_url = one.message_url(*shown) if shown else None
    return {"answer_url": answer_url, "chat_url": one.channel_url(channel.tenant), "chat": one.label}
