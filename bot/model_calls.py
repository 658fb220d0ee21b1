"""Short calls to a model that only help an answer: each is tried once, in bounded time.

Whoever calls goes on without, when a call fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from bot.core.errors import ModelReplyUnusable
from bot.model_endpoint import Ask, ModelEndpoint, in_time

_FENCED = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


def prompt(name: str) -> str:
    """The text of a prompt, with its ``{fields}``."""
    return files("bot.core").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has all of these and nothing else, as strict mode takes it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


class ModelCalls:
    """Asks a model for a little JSON."""

    def __init__(self, endpoint: ModelEndpoint, *, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds

    @classmethod
    def connect(cls, api_key: str, base_url: str | None, *, model: str, seconds: float) -> ModelCalls:
        """Calls at an endpoint that take at most ``seconds`` each; nothing is sent yet."""
        return cls(ModelEndpoint.connect(api_key, base_url, model=model, seconds=seconds), seconds=seconds)

    async def ask(self, system: str, user: str, schema: Mapping[str, Any], *, tokens: int) -> Any:
        """The value of a reply of at most ``tokens`` tokens.

        Raises:
            ModelUnavailable: the endpoint is down, late or refusing.
            ModelReplyUnusable: the reply is cut off, or no JSON.
        """
        send = partial(self._endpoint.reply, tries=1)
        structured, plain = Ask(system, user, tokens, schema), Ask(system, user, tokens)
        async with in_time(self._seconds):
            reply = await self._endpoint.prefer_schema(partial(send, structured), partial(send, plain))
        return _value(reply.text)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _value(text: str) -> Any:
    """The JSON of a reply.

    Raises:
        ModelReplyUnusable: it is none.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise ModelReplyUnusable("the reply is no JSON") from error
