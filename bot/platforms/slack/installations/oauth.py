"""Installs the app in workspaces through Slack's OAuth flow and deletes their tokens on uninstallation.

Bolt runs the flow; this module adds the stores, the validation of settings and one-sentence result pages.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackClientError
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator

from bot.loopback import is_loopback_host
from bot.platforms.slack.events import SLACK_ID, installation_of
from bot.platforms.slack.installations.installation_store import (
    STATE_SECONDS,
    EncryptedInstallationStore,
    InstallationsBusy,
    SignedStates,
)
from bot.platforms.slack.installations.token_cipher import TokenCipher
from bot.platforms.slack.installations.workspaces import InstalledWorkspaces
from bot.platforms.slack.web_api import web_client
from bot.platforms.slack.workspace.app_manifest import SCOPES
from bot.settings import BotSettings, revealed
from storage.clock import utc_now
from storage.errors import SettingsError, StorageError
from storage.installations.slack_installations import SlackInstallations

Json = Mapping[str, Any]

INSTALL, REDIRECT = "/slack/install", "/slack/oauth_redirect"
CANCELLED = "Footnote isn’t installed, because the request was cancelled in Slack."
REFUSED = (
    f"Footnote isn’t installed: this page was opened twice, or more than ten minutes after {INSTALL}, or in "
    f"another browser. Start again at {INSTALL}."
)
NO_CODE = f"Footnote isn’t installed, because Slack didn’t confirm it. Start again at {INSTALL}."
UNREACHABLE = f"Footnote isn’t installed, because I couldn’t reach Slack. Start again at {INSTALL}."
NOT_SAVED = (
    f"Footnote isn’t installed, because I couldn’t save it. Start again at {INSTALL} in a few minutes."
)
BUSY = "Footnote isn’t installed yet: too many people are installing it. Reload this page in a moment."
# Bolt's failure reason -> page; the reason may come from the URL, so unknown ones are not echoed.
_SENTENCES = {
    "access_denied": CANCELLED,
    "invalid_browser": REFUSED,
    "invalid_state": REFUSED,
    "missing_code": NO_CODE,
    "invalid_code": NO_CODE,
    "storage_error": NO_CODE,
}

log = logging.getLogger(__name__)


def require_oauth_settings(settings: BotSettings) -> None:
    """Check that all OAuth settings are set, and no single-workspace setting with them.

    Raises:
        SettingsError: they are not; the message names the setting.
    """
    if settings.slack_client_id is None or settings.slack_client_secret is None:
        raise SettingsError("set both SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, or neither")
    if settings.slack_bot_token is not None:
        raise SettingsError(
            "SLACK_BOT_TOKEN is for one workspace, SLACK_CLIENT_ID for many: set only one of them"
        )
    if settings.slack_app_token is not None:
        raise SettingsError(
            "SLACK_APP_TOKEN: Socket Mode is not for an app that many workspaces install; with "
            "SLACK_CLIENT_ID events come over HTTP"
        )
    if settings.slack_signing_secret is None:
        raise SettingsError("SLACK_CLIENT_ID is set, but events cannot arrive: set SLACK_SIGNING_SECRET")
    is_real = not is_loopback_host(urlsplit(settings.slack_api_url).hostname)
    if settings.public_url is None or (is_real and not settings.public_url.startswith("https://")):
        raise SettingsError(
            "SLACK_CLIENT_ID: Slack sends browsers back after an installation; set FOOTNOTE_PUBLIC_URL to "
            "the https:// address under which they reach this server"
        )


class SlackOAuth:
    """OAuth installations: the two routes, the Web API clients, and uninstallation."""

    def __init__(self, settings: BotSettings, installations: SlackInstallations, cipher: TokenCipher) -> None:
        """Build Bolt's OAuth flow; no request is sent yet.

        Raises:
            SettingsError: a setting is missing, or conflicts with another.
        """
        require_oauth_settings(settings)
        client = web_client("", settings.slack_api_url)
        secret = revealed(settings.slack_client_secret) or ""
        rotator = AsyncTokenRotator(
            client_id=settings.slack_client_id or "", client_secret=secret, client=client
        )
        self.workspaces = InstalledWorkspaces(installations, cipher, rotator, settings.slack_api_url)
        self._installations = installations
        logger = logging.getLogger("slack_bolt.footnote.oauth")
        logger.setLevel(logging.ERROR)  # at lower levels Bolt logs OAuth codes
        self.flow = AsyncOAuthFlow(
            client=client,
            logger=logger,
            settings=AsyncOAuthSettings(
                client_id=settings.slack_client_id,
                client_secret=secret,
                scopes=SCOPES,
                user_scopes=[],
                redirect_uri=f"{(settings.public_url or '').rstrip('/')}{REDIRECT}",
                install_path=INSTALL,
                redirect_uri_path=REDIRECT,
                install_page_rendering_enabled=False,
                authorization_url=urljoin(settings.slack_api_url, "/oauth/v2/authorize"),
                installation_store=EncryptedInstallationStore(installations, cipher),
                state_store=SignedStates(secret),
                state_expiration_seconds=STATE_SECONDS,
                callback_options=AsyncCallbackOptions(_installed, _not_installed),
                logger=logger,
            ),
        )

    def add_routes(self, app: web.Application) -> None:
        """Add the install page and the OAuth redirect."""
        app.router.add_get(INSTALL, self._begin, name="slack_install", allow_head=False)
        app.router.add_get(REDIRECT, self._finish, name="slack_oauth_redirect", allow_head=False)

    async def on_uninstalled(self, body: dict[str, Any], context: AsyncBoltContext) -> None:
        """Delete the installation named by ``app_uninstalled`` or ``tokens_revoked``.

        An installation newer than the event stays. Slack sends both events; either is enough.

        Raises:
            DatabaseUnavailable: it could not be deleted, so the event must not be acknowledged.
        """
        event: Json = body.get("event") or {}
        if event.get("type") == "tokens_revoked" and not (event.get("tokens") or {}).get("bot"):
            return  # user tokens only, and we store none
        key = installation_of(context) or str(context.get("enterprise_id") or "")
        told = body.get("event_time")
        until = datetime.fromtimestamp(told + 1, UTC) if isinstance(told, int) else utc_now()
        if gone := await self._installations.erase(key, until):
            log.warning("%s (%s) uninstalled the app: tokens deleted", gone.name, gone.installation)

    async def _begin(self, request: web.Request) -> web.Response:
        # Bolt copies the query into Slack's URL unescaped, so only a valid team id is passed on.
        team = request.query.get("team", "")
        query = f"team={team}" if SLACK_ID.fullmatch(team) else ""
        return await _answer(await self.flow.handle_installation(AsyncBoltRequest(body="", query=query)))

    async def _finish(self, request: web.Request) -> web.Response:
        try:
            returned = AsyncBoltRequest(body="", query=request.query_string, headers=dict(request.headers))
            return await _answer(await self.flow.handle_callback(returned))
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("installation failed: %s", type(error).__name__)
            return await _answer(_page(502, UNREACHABLE))
        except InstallationsBusy:
            log.warning("installation rate-limited: too many at once")
            return await _answer(_page(503, BUSY))
        except (StorageError, OSError) as error:
            log.warning("storing an installation failed: %s", type(error).__name__)
            return await _answer(_page(503, NOT_SAVED))


async def _installed(args: AsyncSuccessArgs) -> BoltResponse:
    installed = args.installation
    place = installed.enterprise_name if installed.is_enterprise_install else installed.team_name
    where = f" in {place}" if place else ""
    return _page(200, f"Footnote is installed{where}. Invite it to a channel: /invite @Footnote")


async def _not_installed(args: AsyncFailureArgs) -> BoltResponse:
    reason = args.reason if args.reason in _SENTENCES else "other"
    log.warning("installation not completed: %s", reason)
    return _page(args.suggested_status_code, _SENTENCES.get(args.reason, NO_CODE))


def _page(status: int, sentence: str) -> BoltResponse:
    return BoltResponse(status=status, body=sentence, headers={"Content-Type": "text/plain; charset=utf-8"})


async def _answer(response: BoltResponse) -> web.Response:
    answer = await to_aiohttp_response(response)
    answer.headers["Cache-Control"] = "no-store"
    return answer
