"""Short calls to a model that only help an answer: each is tried once, in bounded time.

Whoever calls goes on without, when a call fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeVar

from bot.core.errors import ModelReplyUnusable
from bot.core.exchange import AuxiliaryCall, Prompt, Reply, auxiliary_call
from bot.core.prompting import MISSHAPEN, json_of
from bot.model_endpoint import ChatModel, ChatRequest, in_time

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class ShortRequest:
    """What a model is asked for."""

    purpose: str
    """What the record of a question calls it."""
    system: str
    user: str
    schema: Mapping[str, Any]
    tokens: int
    """Longest reply."""


class ModelCalls:
    """Asks a model for a little JSON."""

    def __init__(self, endpoint: ChatModel, *, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds

    @classmethod
    def connect(cls, api_key: str, base_url: str | None, *, model: str, seconds: float) -> ModelCalls:
        """Calls at an endpoint that take at most ``seconds`` each; nothing is sent yet."""
        return cls(ChatModel.connect(api_key, base_url, model=model, seconds=seconds), seconds=seconds)

    async def ask(self, short: ShortRequest, read: Callable[[Any], T]) -> T:
        """What ``read`` makes of the JSON of a reply.

        Raises:
            ModelUnavailable: the endpoint is down, late or refusing.
            ModelReplyUnusable: the reply is cut off, or not the JSON that was asked for.
        """
        structured = ChatRequest(short.system, short.user, short.tokens, short.schema)
        with auxiliary_call(short.purpose) as call:
            async with in_time(self._seconds):
                reply = await self._endpoint.prefer_schema(
                    lambda: self._send(structured, call),
                    lambda: self._send(replace(structured, schema=None), call),
                )
            call.usage = reply.usage
            return _read(reply.text, read)

    async def _send(self, ask: ChatRequest, call: AuxiliaryCall) -> Reply:
        call.prompts.append(Prompt(ask.system, ask.user, ask.schema is not None))
        return await self._endpoint.reply(ask, tries=1)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _read(text: str, read: Callable[[Any], T]) -> T:
    try:
        return read(json_of(text))
    except MISSHAPEN as error:
        raise ModelReplyUnusable("the reply is not the JSON that was asked for") from error
