"""Replies in Slack: one placeholder per question, found again after an unclear outcome, then updated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import Answer, Language
from bot.core.ports import Announcement, DrawFigure, GivenAnswer, Hold
from bot.core.wording import reply_words
from bot.slack.blocks import Block, SlackMessage, render, render_announcement, render_beginning
from bot.slack.feedback_buttons import feedback_blocks
from bot.slack.figure_uploads import FigureUploads
from bot.slack.private_questions import (
    deliver_privately,
    is_private,
    place_privately,
    share_privately_given,
)
from bot.slack.question_buttons import asked_blocks, asked_line, question_blocks
from storage.chat_models import WithdrawnItem
from storage.models import Channel, ChannelKey, Platform, TenantName

log = logging.getLogger(__name__)

Json = dict[str, Any]

MAX_TRIES = 3
MAX_WAIT_SECONDS = 20.0
"""Longest wait that a rate limit may impose on us; beyond it the outbox comes back later."""
PICTURE_SECONDS, PICTURE_PAUSES = 8.0, (0.0, 0.5, 1.0, 2.0)
"""Longest time to add pictures to an answer that is already shown, and the pauses before each try."""
PLACEHOLDER = "footnote_reply"
ANNOUNCEMENT = "footnote_announcement"
PRIVATE: Json = {"is_private": True}
"""Stands for the placeholder of a private question, which nobody posts."""
PAGE_SIZE = 200
"""Messages that Slack gives at once; it advises against more."""
MAX_CLOCK_SKEW = timedelta(minutes=5)
"""By how much our clock may run ahead of the one that stamps Slack's messages."""
CLOSED = {"not_in_channel", "channel_not_found", "is_archived", "restricted_action", "no_permission"}
"""Refusals that no repetition turns into a message."""
PLAIN: Json = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def web_client(token: str, api_url: str) -> AsyncWebClient:
    """A client that never repeats a call by itself: a repeated post is a second message."""
    return AsyncWebClient(token=token, base_url=api_url.rstrip("/") + "/", timeout=10, retry_handlers=[])


class SlackMessenger:
    """Satisfies the core's ``Messenger`` and ``Announcer``; an address is what ``events.read_event`` made."""

    def __init__(
        self, client: AsyncWebClient, sources_shown: int = 5, draw: DrawFigure | None = None
    ) -> None:
        """``draw``: draws the figures of answers; None: they are shown as buttons alone."""
        self.client = client
        self._sources_shown = sources_shown
        self._uploads = FigureUploads(client, draw) if draw else None

    async def place(self, address: Json, language: Language) -> Json:
        """Post the placeholder; its metadata names the question, for ``find_placeholder``.

        A private one is shown to the asker alone, who may have seen it already.
        """
        if is_private(address):
            await place_privately(address, language)
            return dict(PRIVATE)
        reply = await _call(
            self.client.chat_postMessage,
            channel=address["channel"],
            thread_ts=address["thread"],
            text="\n".join(filter(None, [asked_line(address), reply_words(language).searching])),
            metadata=_metadata(address),
            **PLAIN,
        )
        return {"channel": reply["channel"], "ts": reply["ts"]}

    async def find_placeholder(self, address: Json) -> Json | None:
        """Search all that was posted since the question for a message that names it."""
        if is_private(address):
            return dict(PRIVATE)
        where = {"channel": address["channel"], "oldest": address["ts"]}
        if address["thread"]:
            read, where["ts"] = self.client.conversations_replies, address["thread"]
        else:
            read = self.client.conversations_history
        ts = await _find(read, _metadata(address), **where)
        return {"channel": address["channel"], "ts": ts} if ts else None

    async def show(self, address: Json, message: Json, text: str) -> None:
        """Write the beginning of an answer over the placeholder."""
        if is_private(address):
            return
        await self._write_over(address, message, render_beginning(text), tries=1)

    async def deliver(self, address: Json, message: Json, answer: Answer) -> None:
        """Write the answer over the placeholder, with what people may say of it."""
        if is_private(address):
            await deliver_privately(address, answer, self._sources_shown)
            return
        await self._write_over(address, message, self._rendered(address, answer), tries=MAX_TRIES)

    async def illustrate(self, address: Json, message: Json, answer: Answer, hold: Hold) -> None:
        """Upload the answer's figures and show them in it.

        A private answer has none: nobody but its asker may see anything of it. Slack refuses a file that it
        has not looked through yet, so it is asked again for a while.
        """
        if is_private(address) or self._uploads is None:
            return
        try:
            async with asyncio.timeout(PICTURE_SECONDS):
                pictures = await self._uploads.upload(answer.figures)
                for pause in PICTURE_PAUSES if pictures else ():
                    await asyncio.sleep(pause)
                    if await self._show_pictures(address, message, answer, hold, pictures):
                        return
        except TimeoutError:
            pass
        log.warning("an answer stays without its pictures")

    async def _show_pictures(
        self, address: Json, message: Json, answer: Answer, hold: Hold, pictures: Mapping[int, str]
    ) -> bool:
        """Whether Slack took them."""
        await hold()
        try:
            await self._write_over(address, message, self._rendered(address, answer, pictures), tries=1)
        except DeliveryError as error:
            log.info("pictures not shown yet: %s", error)
            return False
        return True

    def _rendered(
        self, address: Json, answer: Answer, pictures: Mapping[int, str] | None = None
    ) -> SlackMessage:
        rendered = render(answer, self._sources_shown, pictures)
        blocks = feedback_blocks(answer, _tenant(address), address["key"])
        return replace(rendered, blocks=(*rendered.blocks, *blocks))

    async def whisper(self, place: Json, text: str, blocks: Sequence[Block]) -> None:
        """Say something to one person alone; a refusal is logged and nothing else."""
        try:
            await _call(self.client.chat_postEphemeral, 1, text=text, blocks=blocks, **place)
        except DeliveryError as error:
            log.warning("nothing could be said to one person: %s", type(error).__name__)

    async def _write_over(self, address: Json, message: Json, rendered: SlackMessage, *, tries: int) -> None:
        await _call(
            self.client.chat_update,
            tries,
            channel=message["channel"],
            ts=message["ts"],
            text="\n".join(filter(None, [asked_line(address), rendered.text])),
            blocks=[*asked_blocks(address), *rendered.blocks],
            metadata=_metadata(address),
            **PLAIN,
        )

    async def share(self, url: str, given: GivenAnswer) -> None:
        """Show a private answer to its channel, in reply to the click at ``url``; raises as ``deliver``."""
        await share_privately_given(url, given, self._sources_shown)

    async def delete(self, withdrawn: WithdrawnItem) -> None:
        """Delete the answer to a question that is no more, as far as Slack lets us.

        Raises:
            DeliveryError: Slack did not say whether it did, or asked us to wait.
        """
        message = withdrawn.message
        if message is None and withdrawn.is_posting:
            message = await self.find_placeholder(withdrawn.address)
        if not message:
            return
        pictures = await self._pictures_of(withdrawn.address, message) if self._uploads else []
        try:
            await _call(self.client.chat_delete, 1, channel=message["channel"], ts=message["ts"])
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                raise
            log.info("an answer to a deleted question stays: %s", error)
        if self._uploads:
            await self._uploads.delete(pictures)

    async def _pictures_of(self, address: Json, message: Json) -> list[str]:
        """The files that a message shows; none when Slack does not say."""
        where = {"channel": message["channel"]}
        if address["thread"]:
            read, where["ts"] = self.client.conversations_replies, address["thread"]
        else:
            read = self.client.conversations_history
        one = {"oldest": message["ts"], "latest": message["ts"], "inclusive": True, "limit": 2}
        try:
            reply = await _call(read, 1, **where, **one)
        except DeliveryError as error:
            log.info("the pictures of a deleted answer stay: %s", error)
            return []
        blocks = [
            block
            for found in reply["messages"]  # a reply comes with its thread's first message
            if found["ts"] == message["ts"]
            for block in found.get("blocks", ())
        ]
        return [block["slack_file"]["id"] for block in blocks if "slack_file" in block]

    def announcing_place(self, channel: Channel, address: Json | None) -> Json:
        """The conversation that the tenant is named after."""
        return {"channel": channel.tenant.rsplit("_", 1)[1], "tenant": channel.tenant}

    async def announce(self, place: Json, announcement: Announcement) -> None:
        """Post it; its metadata names it, for ``has_announced``."""
        rendered = render_announcement(announcement)
        await _call(
            self.client.chat_postMessage,
            channel=place["channel"],
            text=rendered.text,
            blocks=[*rendered.blocks, *question_blocks(announcement.questions, place["tenant"])],
            metadata=_announcement_metadata(announcement.id),
            **PLAIN,
        )

    async def has_announced(self, place: Json, announcement: str, since: datetime) -> bool:
        """Search all that was posted since for a message that names it."""
        oldest = (since - MAX_CLOCK_SKEW).timestamp()
        found = await _find(
            self.client.conversations_history,
            _announcement_metadata(announcement),
            channel=place["channel"],
            oldest=f"{oldest:.6f}",
        )
        return found is not None


def _tenant(address: Json) -> TenantName:
    """Of the channel that an address is in; its key begins with the installation."""
    return ChannelKey(Platform.SLACK, address["key"].partition(":")[0], address["channel"]).tenant


def _metadata(address: Json) -> Json:
    return {"event_type": PLACEHOLDER, "event_payload": {"message_key": address["key"]}}


def _announcement_metadata(announcement: str) -> Json:
    return {"event_type": ANNOUNCEMENT, "event_payload": {"announcement": announcement}}


async def _find(read: Callable[..., Awaitable[Any]], metadata: Json, **where: Any) -> str | None:
    """The ts of the message with this metadata, read page by page to the last one; None when there is none.

    Raises:
        DeliveryError: Slack did not let us read all of it: nobody knows.
    """
    cursor: str | None = None
    while True:
        reply = await _call(read, include_all_metadata=True, limit=PAGE_SIZE, cursor=cursor, **where)
        for message in reply["messages"]:
            if metadata.items() <= (message.get("metadata") or {}).items():
                return str(message["ts"])
        cursor = (reply.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            return None


async def _call(method: Callable[..., Awaitable[Any]], tries: int = MAX_TRIES, **arguments: Any) -> Any:
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
