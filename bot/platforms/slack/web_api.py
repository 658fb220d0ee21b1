"""Calls to Slack's Web API: retries on rate limits, and mapping of failures to delivery errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import AppUninstalled, ChannelClosed, DeliveryError, DeliveryUnclear
from bot.platforms.slack.workspace.moved_channels import ChannelIdMap, TranslatingClient
from storage.task_group import retry

# Messages per page; Slack recommends no more.
PAGE_SIZE = 200
MAX_TRIES = 3
# Longest Retry-After that is waited for here, because other work queues up; longer ones go to the outbox.
MAX_WAIT_SECONDS = 3.0
# Permanent errors: a retry can neither post nor update the message.
PERMANENT_ERRORS = {
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
    """The app is not installed in a workspace, or was removed."""


class TokenUnavailable(SlackClientError):
    """A workspace's token cannot be read, or has expired and could not be renewed yet."""


class WebClients(Protocol):
    """Web API clients per installation."""

    # Maps channel ids in calls and replies.
    channel_ids: ChannelIdMap | None

    async def client_for(self, installation: str) -> AsyncWebClient:
        """Return the client with this installation's token.

        Raises:
            NotInstalled: the app is not installed there.
            TokenUnavailable: its token cannot be read or renewed at the moment.
        """


class WorkspaceClient(TranslatingClient):
    """Client with one token; with SLACK_BOT_TOKEN it serves every installation."""

    async def client_for(self, installation: str) -> AsyncWebClient:
        """Return itself."""
        return self


def web_client(token: str, api_url: str) -> WorkspaceClient:
    """Return a client without automatic retries: a retried post could post a second message."""
    return WorkspaceClient(token=token, base_url=api_url.rstrip("/") + "/", timeout=10, retry_handlers=[])


async def delivery_client(clients: WebClients, installation: str) -> AsyncWebClient:
    """Return the client of an installation, with failures as delivery errors.

    Raises:
        AppUninstalled: the app was removed there.
        DeliveryError: its token is unavailable at the moment.
    """
    try:
        return await clients.client_for(installation)
    except NotInstalled as error:
        raise AppUninstalled("the workspace removed the app") from error
    except SlackClientError as error:
        raise DeliveryError(f"Slack client unavailable: {error}") from error


async def call(method: Callable[..., Awaitable[Any]], tries: int = MAX_TRIES, **arguments: Any) -> Any:
    """Call a Web API method; retry only if rate-limited, because then Slack has done nothing.

    Raises:
        DeliveryUnclear: the connection broke or Slack answered 5xx, so the call may have taken effect.
        DeliveryError: Slack refused, or could not be reached at all.
    """

    async def attempt() -> Any:
        try:
            return await method(**arguments)
        except SlackApiError as error:
            raise _refusal(error) from error
        except aiohttp.ClientConnectorError as error:  # not connected: nothing was sent
            raise DeliveryError("Slack could not be reached") from error
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise DeliveryUnclear(f"outcome unknown: {type(error).__name__}") from error

    return await retry(attempt, _pause, tries)


def _pause(error: Exception, _tries: int) -> float | None:
    asked = error.retry_after if isinstance(error, DeliveryError) else None
    return asked if asked is not None and asked <= MAX_WAIT_SECONDS else None


def _refusal(error: SlackApiError) -> DeliveryError:
    status = error.response.status_code
    if status == 429:
        named = {name.lower(): value for name, value in error.response.headers.items()}
        asked = named.get("retry-after", "")
        return DeliveryError("rate-limited by Slack", retry_after=float(asked) if asked.isdigit() else 1.0)
    if status >= 500:
        return DeliveryUnclear(f"Slack answered {status}")
    cause = error.response.get("error")
    return (ChannelClosed if cause in PERMANENT_ERRORS else DeliveryError)(f"Slack refused: {cause}")


async def find_message(
    read: Callable[..., Awaitable[Any]], is_wanted: Callable[[dict[str, Any]], bool], **where: Any
) -> str | None:
    """Return the ts of the first matching message, following the pagination cursor to the end; else None.

    Raises:
        DeliveryError: a page could not be read, so the result is unknown.
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
