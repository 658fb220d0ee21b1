"""Checks of external services: sign-in, models, embedder."""

from __future__ import annotations

from contextlib import aclosing
from urllib.parse import urlsplit

from bot.core.errors import ModelReplyUnusable, ModelUnavailable
from bot.health.findings import Finding, fail, ok, warn
from bot.health.installation import Installation
from bot.llm.chat_model import ChatModel, ChatRequest, model_timeout
from bot.settings import revealed
from bot.web.sign_in.openid_provider import OpenIdProvider, ProviderUnavailable
from storage.errors import docs_url
from storage.settings import OPENAI
from storage.stores import open_embedder

# A self-hosted model may have to load first.
MODEL_SECONDS = 15.0
REPLY_TOKENS = 16

TROUBLESHOOTING = docs_url("troubleshooting.md")


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
