"""Health check of Slack: tokens, their scopes, and whether events can arrive."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from slack_sdk.errors import SlackApiError

from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.health.findings import Finding, fail, ok, warn
from bot.health.installation import Installation
from bot.platforms.slack.installations.token_cipher import DecryptionFailed, TokenCipher, open_token_cipher
from bot.platforms.slack.web_api import call, web_client
from bot.platforms.slack.workspace.app_manifest import SCOPES
from bot.settings import BotSettings, revealed
from storage.clock import utc_now
from storage.errors import SettingsError, docs_url
from storage.installations.slack_installations import SlackInstallation, SlackInstallations

# Slack workspaces that are checked; others are left out.
MAX_WORKSPACES = 20

TROUBLESHOOTING = docs_url("troubleshooting.md")
TOKEN_PAGE = f"{TROUBLESHOOTING}#slack-refuses-the-token"


async def check_slack(installation: Installation) -> list[Finding]:
    """Check that each token is valid and has the manifest's scopes, and that events can arrive."""
    bot = installation.settings.bot
    if bot.slack_bot_token is None and not bot.has_slack_oauth:
        return [ok("not connected")]
    found = _events(bot)
    if bot.has_slack_oauth:
        return [*found, *await _check_workspaces(installation)]
    found.append(await _check_token(revealed(bot.slack_bot_token) or "", bot.slack_api_url, ""))
    if bot.slack_app_token:
        found += await _check_socket(bot)
    return found


def _events(bot: BotSettings) -> list[Finding]:
    if bot.slack_app_token or bot.slack_signing_secret:
        return []
    text = "no events can arrive: neither SLACK_APP_TOKEN nor SLACK_SIGNING_SECRET is set"
    fix = (
        "set SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (events over HTTP): "
        f"{docs_url('slack.md')}"
    )
    return [fail(text, fix, f"{TROUBLESHOOTING}#slack-sends-nothing")]


async def _check_token(token: str, api_url: str, workspace: str) -> Finding:
    """Check one bot token; ``workspace`` is '' if there is only one workspace."""
    prefix = f"{workspace}: " if workspace else ""
    try:
        reply = await call(web_client(token, api_url).auth_test, tries=1)
    except DeliveryError as error:
        fix = "install the app there again, at /slack/install" if workspace else "set a new SLACK_BOT_TOKEN"
        return fail(f"{prefix}{error}", _unreachable(error, api_url) or fix, TOKEN_PAGE)
    headers = {name.lower(): value for name, value in reply.headers.items()}
    name = f"{prefix}connected to {reply.get('team')} as {reply.get('user')}"
    if "x-oauth-scopes" not in headers:
        return ok(f"{name}; Slack did not report its scopes")
    granted = {one.strip() for one in headers["x-oauth-scopes"].split(",")}
    if missing := [scope for scope in SCOPES if scope not in granted]:
        fix = "update the app's manifest (`footnote manifest slack`), then install it again"
        text = f"{name}, without the scopes {', '.join(missing)}"
        return fail(text, fix, f"{TROUBLESHOOTING}#slack-lacks-a-scope")
    return ok(f"{name}, with all {len(SCOPES)} scopes")


async def _check_socket(bot: BotSettings) -> list[Finding]:
    """Check that Socket Mode may be opened, without opening a socket."""
    client = web_client(revealed(bot.slack_app_token) or "", bot.slack_api_url)
    try:
        await call(client.apps_connections_open, tries=1, app_token=revealed(bot.slack_app_token))
    except DeliveryError as error:
        fix = "create an app-level token with connections:write, and set SLACK_APP_TOKEN"
        fix = _unreachable(error, bot.slack_api_url) or fix
        return [fail(f"Socket Mode: {error}", fix, f"{TROUBLESHOOTING}#slack-sends-nothing")]
    return []


def _unreachable(error: DeliveryError, api_url: str) -> str:
    """Return the fix where no token is to blame: no answer, an overload or a fault; '' if Slack refused."""
    is_refusal = isinstance(error.__cause__, SlackApiError) and not isinstance(error, DeliveryUnclear)
    if is_refusal and error.retry_after is None:
        return ""
    return f"check that this machine reaches {urlsplit(api_url).netloc} (network, DNS, proxy), and try again"


async def _check_workspaces(installation: Installation) -> list[Finding]:
    database = await installation.database_for("Slack's workspaces")
    installed = await SlackInstallations(database).all() if database else []
    if not installed:
        return [warn("no workspace installed the app", "open /slack/install there", TOKEN_PAGE)]
    cipher = None
    if (installation.settings.bot.token_keys or installation.settings.home / "token_keys.json").exists():
        try:
            cipher = open_token_cipher(installation.settings.bot, installation.settings.storage)
        except SettingsError as error:
            return [fail(str(error), "follow the message", TOKEN_PAGE)]
    api_url = installation.settings.bot.slack_api_url
    asked = [_check_workspace(one, cipher, api_url) for one in installed[:MAX_WORKSPACES]]
    return list(await asyncio.gather(*asked))


async def _check_workspace(held: SlackInstallation, cipher: TokenCipher | None, api_url: str) -> Finding:
    fix = "install the app there again, at /slack/install"
    if held.problem:
        return fail(f"{held.name}: {held.problem}", fix, TOKEN_PAGE)
    try:
        if cipher is None:
            raise DecryptionFailed
        tokens = cipher.decrypt(held.installation, held.sealed)
    except DecryptionFailed:
        text = f"{held.name}: its token was encrypted with other keys"
        return fail(
            text, f"restore token_keys.json (or the file in FOOTNOTE_TOKEN_KEYS), or {fix}", TOKEN_PAGE
        )
    if held.expires_at and held.expires_at <= utc_now():
        return warn(
            f"{held.name}: its token has expired and will be renewed", "start `footnote serve`", TOKEN_PAGE
        )
    return await _check_token(tokens.bot, api_url, held.name)
