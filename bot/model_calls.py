"""Short calls to the model's endpoint that only help an answer: each is tried once, in bounded time.

Beside ``generator.py`` the one door to that SDK here. Whoever calls goes on without, when a call fails.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from bot.core.errors import ModelReplyUnusable, ModelUnavailable

_FENCED = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)
_REFUSED = (openai.BadRequestError, openai.UnprocessableEntityError)


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
    """Asks a model for a little JSON; knows whether its endpoint takes a schema."""

    def __init__(self, client: AsyncOpenAI, *, model: str, seconds: float) -> None:
        self._client = client
        self._model = model
        self._seconds = seconds
        self._takes_schema = True

    @classmethod
    def connect(cls, api_key: str, base_url: str | None, *, model: str, seconds: float) -> ModelCalls:
        """Calls at an endpoint that take at most ``seconds`` each; nothing is sent yet."""
        client = AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=seconds)
        return cls(client, model=model, seconds=seconds)

    async def ask(self, system: str, user: str, schema: Mapping[str, Any], *, tokens: int) -> Any:
        """The value of a reply of at most ``tokens`` tokens.

        Raises:
            ModelUnavailable: the endpoint is down, late or refusing.
            ModelReplyUnusable: the reply is cut off, or no JSON.
        """
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            async with asyncio.timeout(self._seconds):
                return _value(await self._send(messages, schema, tokens))
        except (TimeoutError, openai.APIConnectionError, openai.APIStatusError) as error:
            raise ModelUnavailable(type(error).__name__) from error
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise ModelReplyUnusable(type(error).__name__) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, messages: list[dict[str, str]], schema: Mapping[str, Any], tokens: int) -> object:
        """What the SDK returns; an endpoint that refuses a schema is not sent one again."""
        if self._takes_schema:
            wanted = {"name": "reply", "strict": True, "schema": schema}
            structure = {"response_format": {"type": "json_schema", "json_schema": wanted}}
            try:
                return await self._create(messages, tokens, structure)
            except _REFUSED:
                self._takes_schema = False
        return await self._create(messages, tokens, {})

    async def _create(self, messages: list[dict[str, str]], tokens: int, structure: dict[str, Any]) -> object:
        create: Any = self._client.chat.completions.create
        reply: object = await create(
            model=self._model, messages=messages, temperature=0, max_tokens=tokens, **structure
        )
        return reply


def _value(reply: object) -> Any:
    """The JSON of a whole completion.

    Raises:
        ValueError: it is none, or was cut off.
    """
    choices = reply.choices if isinstance(reply, ChatCompletion) else None
    if not choices or choices[0].finish_reason != "stop" or choices[0].message is None:
        raise ValueError("no whole completion")
    text = choices[0].message.content or ""
    fenced = _FENCED.fullmatch(text)
    return json.loads(fenced[1] if fenced else text)
