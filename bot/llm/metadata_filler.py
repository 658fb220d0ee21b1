"""Asks the model that writes answers for a procedure's metadata where patterns found none."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bot.answers.prompts import read_prompt
from bot.core.errors import ModelError
from bot.llm.chat_model import JsonCalls, JsonRequest, object_schema
from bot.settings import Settings, revealed
from storage.errors import SettingsError

MAX_CHARS = 6000

# (text of a page, names of fields) -> what the model says of them.
Fill = Callable[[str, Sequence[str]], Awaitable[Mapping[str, str]]]

_TOKENS = 200
_log = logging.getLogger(__name__)


def metadata_filler(settings: Settings) -> Fill | None:
    """Return a call of the model, None if it is off; ``SettingsError`` if there is no model."""
    if settings.ingestion.metadata_model == "off":
        return None
    bot = settings.bot
    if not bot.has_model:
        raise SettingsError("FOOTNOTE_METADATA_MODEL: name the model by OPENAI_API_KEY or OPENAI_BASE_URL")

    async def fill(text: str, missing: Sequence[str]) -> Mapping[str, str]:
        key = revealed(bot.openai_api_key) or "none"
        calls = JsonCalls.connect(key, bot.openai_base_url, model=bot.openai_model, seconds=bot.model_seconds)
        try:
            return await calls.ask(_request(text, missing), lambda reply: _texts(reply, missing))
        except ModelError as error:
            _log.warning("metadata call failed: %s", error)
            return {}
        finally:
            await calls.aclose()

    return fill


def _request(text: str, missing: Sequence[str]) -> JsonRequest:
    fence = secrets.token_hex(3)
    user = f"<page {fence}>\n{text[:MAX_CHARS]}\n</page {fence}>\n\nFields: {', '.join(missing)}"
    schema = object_schema({name: {"type": "string"} for name in missing})
    return JsonRequest("metadata", read_prompt("metadata").format(fence=fence), user, schema, _TOKENS)


def _texts(reply: Mapping[str, object], missing: Sequence[str]) -> dict[str, str]:
    found = {name: reply.get(name) for name in missing}
    return {name: value for name, value in found.items() if isinstance(value, str)}
