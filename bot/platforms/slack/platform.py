"""Slack in the list of platforms; what needs its SDK is imported when it is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.chat.chat_platform import PlatformSpec
from bot.chat.chat_service import ChatService
from bot.health.findings import HealthCheck
from bot.loopback import is_loopback_url
from bot.platforms.slack.address import SLACK
from bot.platforms.slack.events import message_url
from bot.settings import BotSettings
from storage.errors import docs_url
from storage.installations.slack_installations import SlackInstallations
from storage.models import TenantName
from storage.stores import Stores

if TYPE_CHECKING:
    from bot.health.installation import Installation
    from bot.platforms.slack.adapter import SlackAdapter

Json = Mapping[str, Any]

# Timeout of the check: many workspaces may be asked.
CHECK_SECONDS = 15.0
# Tenant name; an organisation-wide install (E...) names no workspace.
_TENANT = re.compile(r"sl_(?:(T[A-Z0-9]+)|E[A-Z0-9]+)_([A-Z0-9]+)")


def is_configured(settings: BotSettings) -> bool:
    """True if a token or OAuth is set."""
    return settings.slack_bot_token is not None or settings.has_slack_oauth


def open_slack(settings: BotSettings, service: ChatService, stores: Stores) -> SlackAdapter | None:
    """Return the adapter, None if it is not configured.

    Raises:
        SettingsError: no way to receive events is configured, or settings conflict.
    """
    if not is_configured(settings):
        return None
    from bot.platforms.slack.adapter import SlackAdapter
    from bot.platforms.slack.installations.oauth import SlackOAuth
    from bot.platforms.slack.installations.token_cipher import open_token_cipher

    oauth = None
    if settings.has_slack_oauth:
        cipher = open_token_cipher(settings, stores.settings)
        oauth = SlackOAuth(settings, SlackInstallations(stores.database), cipher)
    return SlackAdapter(settings, service, oauth)


def _health_check(installation: Installation) -> HealthCheck:
    from bot.platforms.slack.installations.health import check_slack

    docs = f"{docs_url('troubleshooting.md')}#slack-refuses-the-token"
    return HealthCheck(SLACK, partial(check_slack, installation), docs, CHECK_SECONDS)


def _manifest(public_url: str) -> str:
    from bot.platforms.slack.workspace.app_manifest import render_manifest

    return render_manifest(public_url)


def channel_url(tenant: TenantName) -> str | None:
    """Return a link that opens a channel."""
    if (found := _TENANT.fullmatch(tenant)) is None:
        return None
    team, conversation = found.groups()
    return f"https://slack.com/app_redirect?channel={conversation}" + (f"&team={team}" if team else "")


SLACK_PLATFORM = PlatformSpec(
    SLACK,
    "Slack",
    open=open_slack,
    route="slack_events",
    not_ready="Slack's socket is not connected",
    # A Slack API on this machine is a test's.
    is_remote=lambda one: is_configured(one) and not is_loopback_url(one.slack_api_url),
    health_check=_health_check,
    clock_url=lambda one: one.slack_api_url if is_configured(one) else None,
    is_shared=lambda one: one.has_slack_oauth,
    message_url=message_url,
    channel_url=channel_url,
    manifest=_manifest,
)
