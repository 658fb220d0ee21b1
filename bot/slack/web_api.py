"""Calls of Slack's Web API: what a refusal, a rate limit and silence mean for us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear, WorkspaceLeft
from bot.slack.workspace.moved_channels import MovedChannels, TranslatingClient

# Messages that Slack gives at once; it advises against more.
PAGE_SIZE = 200
MAX_TRIES = 3
# Longest wait that a rate limit may impose on us: others wait behind it. Beyond it the outbox comes back.
MAX_WAIT_SECONDS = 3.0
# Refusals that no repetition turns into a message, or into another text of one.
CLOSED = {
    "not_in_channel",
    "channel_not_found",
    "is_archived",
    "restricted_action",
    "no_permission",
    "message_not_found",
    "cant_update_message",
    "edit_window_closed",
}


class NotInstalled(SlackClientError):
    """The app is not installed in a workspace, or not any more."""


class TokenUnavailable(SlackClientError):
    """A workspace's token cannot be read, or has ended and could not be renewed yet."""


class WebClients(Protocol):
    """The Web API, for each installation with its own token."""

    # What their calls and replies are translated by.
    moved: MovedChannels | None

    async def of(self, installation: str) -> AsyncWebClient:
        """Return a client for calls that concern this installation and no other.

        Raises:
            NotInstalled: the app is not installed there.
            TokenUnavailable: its token cannot be had just now.
        """


class WorkspaceClient(TranslatingClient):
    """A client with one token; where that is SLACK_BOT_TOKEN, it is the client of every installation."""

    async def of(self, installation: str) -> AsyncWebClient:
        """Itself."""
        return self


def web_client(token: str, api_url: str) -> WorkspaceClient:
    """Return a client that never repeats a call by itself: a repeated post is a second message."""
    return WorkspaceClient(token=token, base_url=api_url.rstrip("/") + "/", timeout=10, retry_handlers=[])


async def client_of(clients: WebClients, installation: str) -> AsyncWebClient:
    """Return the client for messages to an installation.

    Raises:
        WorkspaceLeft: the app is not installed there any more.
        DeliveryError: nothing can be sent there just now.
    """
    try:
        return await clients.of(installation)
    except NotInstalled as error:
        raise WorkspaceLeft("the workspace removed the app") from error
    except SlackClientError as error:
        raise DeliveryError(f"nothing can be sent there: {error}") from error


async def call(method: Callable[..., Awaitable[Any]], tries: int = MAX_TRIES, **arguments: Any) -> Any:
    """One call of the Web API, repeated only when Slack said that it did nothing but count.

    Raises:
        DeliveryUnclear: the connection broke, or a server failed, before Slack said what it did.
        DeliveryError: Slack refused, or could not be reached at all.
    """
    for tries_left in reversed(range(tries)):
        try:
            return await method(**arguments)
        except SlackApiError as error:
            refusal = _refusal(error)
            if not (
                tries_left and refusal.retry_after is not None and refusal.retry_after <= MAX_WAIT_SECONDS
            ):
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
        named = {name.lower(): value for name, value in error.response.headers.items()}
        asked = named.get("retry-after", "")
        return DeliveryError("Slack asked us to wait", retry_after=float(asked) if asked.isdigit() else 1.0)
    if status >= 500:
        return DeliveryUnclear(f"Slack answered {status}")
    cause = error.response.get("error")
    return (ChannelClosed if cause in CLOSED else DeliveryError)(f"Slack refused: {cause}")


async def find_message(
    read: Callable[..., Awaitable[Any]], is_wanted: Callable[[dict[str, Any]], bool], **where: Any
) -> str | None:
    """Return the ts of the first such message, read page by page to the last one; None when there is none.

    Raises:
        DeliveryError: Slack did not let us read all of it: nobody knows.
    """
    cursor: str | None = None
    while True:
        reply = await call(read, include_all_metadata=True, limit=PAGE_SIZE, cursor=cursor, **where)
        for message in reply["messages"]:
            if is_wanted(message):
                return str(message["ts"])
        cursor = (reply.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            return None
