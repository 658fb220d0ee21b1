"""Replies in Slack: one placeholder per question, found again after an unclear outcome, then updated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core import wording
from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.models import Answer
from bot.slack.render import render

Json = dict[str, Any]

TRIES = 3
PATIENCE = 20.0
"""Longest wait that a rate limit may impose on us; beyond it the outbox comes back later."""
PLACEHOLDER = "footnote_reply"
PLAIN = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def web_client(token: str, api_url: str) -> AsyncWebClient:
    """A client that never repeats a call by itself: a repeated post is a second message."""
    return AsyncWebClient(token=token, base_url=api_url.rstrip("/") + "/", timeout=10, retry_handlers=[])


class SlackMessenger:
    """Satisfies ``bot.core.ports.Messenger``; an address is what ``events.read_event`` made."""

    def __init__(self, client: AsyncWebClient, sources_shown: int = 5) -> None:
        self.client = client
        self._sources_shown = sources_shown

    async def place(self, address: Json) -> Json:
        """Post the placeholder; its metadata names the question, for ``find_placeholder``."""
        reply = await _call(
            self.client.chat_postMessage,
            channel=address["channel"],
            thread_ts=address["thread"],
            text=wording.SEARCHING,
            metadata=_metadata(address),
            **PLAIN,
        )
        return {"channel": reply["channel"], "ts": reply["ts"]}

    async def find_placeholder(self, address: Json) -> Json | None:
        """Look through what was posted since the question for a message that names it."""
        where = {"channel": address["channel"], "include_all_metadata": True, "limit": 200}
        if address["thread"]:
            read, where["ts"] = self.client.conversations_replies, address["thread"]
        else:
            read = self.client.conversations_history
        reply = await _call(read, oldest=address["ts"], **where)
        for message in reply["messages"]:
            if (message.get("metadata") or {}).get("event_payload") == _metadata(address)["event_payload"]:
                return {"channel": address["channel"], "ts": message["ts"]}
        return None

    async def deliver(self, address: Json, message: Json, answer: Answer) -> None:
        """Write the answer over the placeholder."""
        rendered = render(answer, self._sources_shown)
        await _call(
            self.client.chat_update,
            channel=message["channel"],
            ts=message["ts"],
            text=rendered.text,
            blocks=list(rendered.blocks),
            metadata=_metadata(address),
            **PLAIN,
        )


def _metadata(address: Json) -> Json:
    return {"event_type": PLACEHOLDER, "event_payload": {"message_key": address["key"]}}


async def _call(method: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
    """One call of the Web API, repeated only when Slack said that it did nothing but count.

    Raises:
        DeliveryUnclear: the connection broke, or a server failed, before Slack said what it did.
        DeliveryError: Slack refused, or could not be reached at all.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            return await method(**arguments)
        except SlackApiError as error:
            refusal = _refusal(error)
            if not (tries_left and refusal.retry_after is not None and refusal.retry_after <= PATIENCE):
                raise refusal from error
            await asyncio.sleep(refusal.retry_after)
        except aiohttp.ClientConnectorError as error:
            raise DeliveryError("Slack could not be reached") from error
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise DeliveryUnclear(f"Slack did not say what it did: {type(error).__name__}") from error
    raise AssertionError("the last try returns or raises")


def _refusal(error: SlackApiError) -> DeliveryError:
    status = error.response.status_code
    if status == 429:
        return DeliveryError("Slack asked us to wait", retry_after=_seconds(error.response.headers))
    if status >= 500:
        return DeliveryUnclear(f"Slack answered {status}")
    return DeliveryError(f"Slack refused: {error.response.get('error')}")


def _seconds(headers: Json) -> float:
    value = {name.lower(): text for name, text in headers.items()}.get("retry-after", "")
    return float(value) if value.isdigit() else 1.0
