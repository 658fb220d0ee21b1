"""Checks of external services: Slack tokens, Teams token, sign-in, models, embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from urllib.parse import urlsplit

import aiohttp

from bot.core.errors import DeliveryError, ModelReplyUnusable, ModelUnavailable
from bot.diagnostics.installation import Installation
from bot.diagnostics.models import Finding, fail, ok, warn
from bot.llm.chat_model import ChatModel, ChatRequest, model_timeout
from bot.settings import BotSettings, revealed
from bot.slack.installations.token_cipher import DecryptionFailed, TokenCipher, open_token_cipher
from bot.slack.web_api import call, web_client
from bot.slack.workspace.app_manifest import SCOPES
from bot.teams.connector import AppCredentials, app_credentials
from bot.web.sign_in.openid_provider import OpenIdProvider, ProviderUnavailable
from storage.clock import utc_now
from storage.errors import SettingsError, docs_url
from storage.installations.slack_installations import SlackInstallation, SlackInstallations
from storage.settings import OPENAI
from storage.stores import open_embedder

# A self-hosted model may have to load first.
MODEL_SECONDS = 15.0
REPLY_TOKENS = 16
TOKEN_SECONDS = 4.0
TEAMS_FIX = (
    f"check MicrosoftAppId, MicrosoftAppPassword and MicrosoftAppTenantId; secrets "
    f"expire: {docs_url('teams.md')}"
)
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
        return fail(f"{prefix}{error}", f"{fix}; or check that {_host(api_url)} is reachable", TOKEN_PAGE)
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
        return [fail(f"Socket Mode: {error}", fix, f"{TROUBLESHOOTING}#slack-sends-nothing")]
    return []


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


async def check_teams(installation: Installation) -> Finding:
    """Check that Microsoft issues the bot's token."""
    bot, docs = installation.settings.bot, f"{TROUBLESHOOTING}#teams-gives-no-token"
    if bot.teams_development:
        fix = "remove FOOTNOTE_TEAMS_DEVELOPMENT, except for the Agents Playground"
        return warn("messages are accepted without tokens", fix, docs)
    if not (bot.teams_app_id or bot.teams_app_password):
        return ok("not connected")
    try:
        return await check_app_token(app_credentials(bot))
    except SettingsError as error:
        return fail(str(error), TEAMS_FIX, docs)


async def check_app_token(credentials: AppCredentials) -> Finding:
    """Check that Microsoft issues a token for these credentials."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TOKEN_SECONDS)) as session:
            await credentials.token(session)
    except DeliveryError as error:
        return fail(str(error), TEAMS_FIX, f"{TROUBLESHOOTING}#teams-gives-no-token")
    return ok("Microsoft issues the bot's token")


async def check_sign_in(installation: Installation) -> Finding:
    """Check that the console's OpenID Connect provider publishes its metadata and keys."""
    sign_in = installation.settings.sign_in
    if sign_in is None or sign_in.oidc_issuer is None:
        return ok("off: the console is available on this machine only")
    host = _host(sign_in.oidc_issuer)
    try:
        await OpenIdProvider(sign_in.oidc_issuer, sign_in.oidc_client_id or "", None, "").check()
    except ProviderUnavailable as error:
        fix = "set FOOTNOTE_OIDC_ISSUER exactly as the provider names itself, and check that it is reachable"
        return fail(
            f"{host} does not work as an OpenID Connect provider: {error}",
            fix,
            f"{TROUBLESHOOTING}#nobody-can-sign-in",
        )
    return ok(f"{host} is available for sign-in")


async def check_models(installation: Installation) -> list[Finding]:
    """Check that each answer model replies to a short prompt."""
    bot = installation.settings.bot
    if not bot.has_model:
        return [ok("none: answers are quotes of the documents")]
    named = [(bot.openai_model, bot.openai_base_url, bot.openai_api_key)]
    if bot.second_model:
        key = bot.second_model_key
        url = bot.second_model_url or bot.openai_base_url
        named.append((bot.second_model, url, key if bot.second_model_url else key or bot.openai_api_key))
    return [await _check_model(model, url, revealed(key)) for model, url, key in named]


async def _check_model(model: str, url: str | None, key: str | None) -> Finding:
    docs = f"{TROUBLESHOOTING}#the-model-does-not-answer"
    place = f"{model} at {_host(url or OPENAI)}"
    endpoint = ChatModel.connect(key or "none", url, model=model, seconds=MODEL_SECONDS / 2)
    async with aclosing(endpoint):
        try:
            async with model_timeout(MODEL_SECONDS / 2):
                await endpoint.reply(ChatRequest("", "Reply with: ok", REPLY_TOKENS), tries=1)
        except ModelUnavailable as error:
            return fail(f"{place}: {error}", _model_fix(str(error), has_key=key is not None), docs)
        except ModelReplyUnusable as error:
            return warn(f"{place}: {error}", "check that the URL is a chat model's", docs)
    return ok(f"{place} replies")


def _model_fix(cause: str, *, has_key: bool) -> str:
    causes = {
        " 401": "set OPENAI_API_KEY to a key that the endpoint accepts" if has_key else "set OPENAI_API_KEY",
        " 403": "grant the key access to this model",
        " 404": "check OPENAI_BASE_URL (including /v1) and OPENAI_MODEL",
        " 429": "the account has exceeded its quota or rate limit",
    }
    default = "check that the endpoint runs and is reachable: OPENAI_BASE_URL"
    return next((fix for status, fix in causes.items() if cause.endswith(status)), default)


async def check_embedder(installation: Installation, key: str | None) -> Finding:
    """Check that the embedder returns a vector.

    Raises:
        EngineStartError, EmbedderUnavailable: it does not.
    """
    settings = installation.settings.storage
    async with open_embedder(settings, key) as embedder:
        await embedder.aembed(["ok"])
    name = settings.embed_model or ("bundled" if settings.has_bundled_embedder else str(settings.embedder))
    return ok(f"{name} returns vectors of {embedder.dimensions} dimensions")


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or "its endpoint"


def hosts_with_clocks(bot: BotSettings) -> Iterable[str]:
    """Yield URLs of configured services whose Date header tells their clock."""
    if bot.slack_bot_token or bot.has_slack_oauth:
        yield bot.slack_api_url
    if bot.teams_app_id and not bot.teams_development:
        yield "https://login.microsoftonline.com"
    if bot.has_model:
        yield bot.openai_base_url or OPENAI
