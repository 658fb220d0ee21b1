"""Slack messenger: posts one placeholder per question, finds it again after a crash, updates it in place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import AppUninstalled, ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import Answer, Language, SourceChange
from bot.core.ports import Announcement, ClaimMessage, DrawFigure, RenewLease, SaveMessage, StoredAnswer
from bot.core.wording import reply_words
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.answer_streams import AnswerStreams, is_orphaned_stream
from bot.platforms.slack.blocks import (
    Block,
    SlackMessage,
    render,
    render_announcement,
    render_beginning,
    shown_pictures,
)
from bot.platforms.slack.feedback_buttons import answer_row
from bot.platforms.slack.private_questions import (
    post_private_answer,
    post_private_placeholder,
    reply_privately,
    share_to_channel,
)
from bot.platforms.slack.question_buttons import asked_blocks, asked_line, news_row, question_blocks
from bot.platforms.slack.surfaces.agent_sessions import AgentSessions
from bot.platforms.slack.web_api import MAX_TRIES, WebClients, call, delivery_client, find_message
from bot.platforms.slack.workspace.figure_uploads import FigureUploads
from bot.platforms.slack.workspace.memberships import Memberships
from bot.settings import BotSettings
from storage.chat_models import STREAM_KEY, WithdrawnItem
from storage.models import Channel, ChannelKey

log = logging.getLogger(__name__)

Json = dict[str, Any]

# Time limit for attaching pictures to a delivered answer, and the backoff before each try.
PICTURE_SECONDS, PICTURE_PAUSES = 8.0, (0.0, 0.5, 1.0, 2.0)
# Event types of message metadata.
PLACEHOLDER = "footnote_reply"
ANNOUNCEMENT = "footnote_announcement"
# Message of a private question: it has no placeholder in the channel.
PRIVATE: Json = {"is_private": True}
# How far our clock may run ahead of Slack's message timestamps.
MAX_CLOCK_SKEW = timedelta(minutes=5)
PLAIN: Json = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


class SlackMessenger:
    """``Messenger`` and ``Announcer`` for Slack; addresses are made by ``events.read_message``."""

    def __init__(
        self,
        clients: WebClients,
        settings: BotSettings,
        draw: DrawFigure | None = None,
        *,
        sessions: AgentSessions | None = None,
    ) -> None:
        """Build the messenger; no request is sent.

        Args:
            settings: answers are streamed where Slack supports it, if a model writes them.
            draw: renders the figures of answers; None: figures get buttons only.
        """
        self.clients = clients
        self._streams = AnswerStreams(is_wanted=settings.has_model)
        self._sources_shown = settings.sources_shown
        self._offers_person = settings.ask_person
        self._sessions = sessions or AgentSessions()
        self._memberships = Memberships(clients)
        self._uploads = FigureUploads(draw) if draw else None

    async def post_placeholder(
        self, address: Json, language: Language, *, queued: str = "", asked: str = ""
    ) -> Json:
        """Post the placeholder, with the question's key as metadata for ``find_placeholder``.

        For a private question it is an ephemeral reply, unless the command was acknowledged with one.
        """
        to = SlackAddress.from_json(address)
        client = await self._client_for(to)
        if to.is_private:
            await post_private_placeholder(to, language)
            return dict(PRIVATE)
        said = reply_words(language)
        # A queued question may wait longer than a stream lives.
        if not queued and (stream := await self._streams.begin(client, to, said.searching)):
            await self._sessions.set_title(client, to, asked)
            return stream
        working = said.fetching if to.upload else said.searching
        reply = await call(
            client.chat_postMessage,
            1,
            channel=to.channel,
            thread_ts=to.thread,
            text="\n".join(filter(None, [asked_line(to), queued or working])),
            metadata=_metadata(to),
            **PLAIN,
        )
        in_session = not queued and await self._sessions.open(client, to, asked)
        return {"channel": reply["channel"], "ts": reply["ts"]} | _in_session(is_opened=in_session)

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Page through the messages since the question for one whose metadata names it.

        Failing that, take the first orphaned stream: streams carry no metadata until they end.
        """
        if (to := SlackAddress.from_json(address)).is_private:
            return dict(PRIVATE)
        client = await self._client_for(to)
        where = {"channel": to.channel, "oldest": to.ts}
        if to.thread:
            read, where["ts"] = client.conversations_replies, to.thread
        else:
            read = client.conversations_history
        ts = await find_message(read, partial(_has, _metadata(to)), **where)
        if ts is None and to.is_streamable:
            taken = {str(one.get("ts")) for one in others}
            ts = await find_message(read, partial(is_orphaned_stream, to, taken), **where)
            return {"channel": to.channel, "ts": ts, STREAM_KEY: True} if ts else None
        in_session = _in_session(is_opened=to.is_typed_in_direct_chat)
        return {"channel": to.channel, "ts": ts} | in_session if ts else None

    async def show_partial(self, address: Json, message: Json, text: str) -> None:
        """Show the first sentences: append them to the stream, else update the placeholder."""
        if (to := SlackAddress.from_json(address)).is_private:
            return
        client = await self._client_for(to)
        if await self._streams.append(client, message, text):
            return
        await self._streams.end(client, message, _metadata(to), is_last=False)
        await self._update(to, message, render_beginning(text), tries=1)

    async def deliver(
        self, address: Json, message: Json, answer: Answer, save: SaveMessage | None = None
    ) -> None:
        """Update the placeholder with the answer and its feedback buttons; no message is posted."""
        to = SlackAddress.from_json(address)
        client = await self._client_for(to)
        if to.is_private:
            await post_private_answer(to, answer, self._sources_shown, offers_person=self._offers_person)
            return
        has_ended = await self._streams.end(client, message, _metadata(to))
        await self._update(to, message, self._rendered(to, answer), tries=MAX_TRIES)
        if has_ended or message.get("in_session"):
            await self._sessions.clear_status(client, to.channel, to.session_thread)

    async def revise(
        self, address: Json, message: Json, answer: Answer, changes: Sequence[SourceChange]
    ) -> None:
        """Update the answer with notes on its changed sources.

        Raises:
            ChannelClosed: the answer is private, or its asker has left the channel that it is from.
            DeliveryError: Slack refused, or could not be reached.
        """
        if (to := SlackAddress.from_json(address)).is_private:
            raise ChannelClosed("a private answer cannot be updated")
        shown = answer.answered_from.tenants if answer.answered_from else ()
        if not await self._memberships.may_read(address, shown):
            raise ChannelClosed("the asker has left the answer's channel")
        pictures = await self._pictures_of(to, message) if answer.figures else {}
        rendered = self._rendered(to, answer, pictures, changes)
        await self._update(to, message, rendered, tries=1)

    async def replace_erased(self, address: Json, message: Json, answer: Answer) -> None:
        """Replace an erased answer's message and delete its pictures; raises as ``revise``."""
        if (to := SlackAddress.from_json(address)).is_private:
            raise ChannelClosed("a private answer cannot be updated")
        pictures = await self._pictures_of(to, message)
        await self._update(to, message, self._rendered(to, answer), tries=1)
        if self._uploads and pictures:
            client = await self._client_for(to)
            await self._uploads.delete(client, list(pictures.values()))

    async def attach_figures(self, address: Json, message: Json, answer: Answer, renew: RenewLease) -> None:
        """Upload the answer's figures and add them to its message.

        Private answers get none: only their asker may see anything of them. Slack rejects a file that it has
        not processed yet, so the update is retried with backoff.
        """
        to = SlackAddress.from_json(address)
        if to.is_private or self._uploads is None:
            return
        try:
            async with asyncio.timeout(PICTURE_SECONDS):
                client = await self._client_for(to)
                pictures = await self._uploads.upload(client, answer.figures)
                for pause in PICTURE_PAUSES if pictures else ():
                    await asyncio.sleep(pause)
                    if await self._show_pictures(to, message, answer, renew, pictures):
                        return
        except (TimeoutError, DeliveryError):
            pass
        log.warning("figures not attached: Slack did not accept them in time")

    async def _show_pictures(
        self, to: SlackAddress, message: Json, answer: Answer, renew: RenewLease, pictures: Mapping[int, str]
    ) -> bool:
        """True if Slack accepted the update with the pictures."""
        await renew()
        try:
            await self._update(to, message, self._rendered(to, answer, pictures), tries=1)
        except DeliveryError as error:
            log.info("attaching figures failed, retrying: %s", error)
            return False
        return True

    def _rendered(
        self,
        to: SlackAddress,
        answer: Answer,
        pictures: Mapping[int, str] | None = None,
        changes: Sequence[SourceChange] = (),
    ) -> SlackMessage:
        row = answer_row(answer, to.tenant, to.key, offers_person=self._offers_person)
        return render(answer, self._sources_shown, pictures, asked_blocks(to), changes, row=row)

    async def post_ephemeral(
        self, installation: str, place: Json, text: str, blocks: Sequence[Block], url: str = ""
    ) -> None:
        """Post an ephemeral message; failures are only logged.

        In channels without the bot, chat.postEphemeral fails: fall back to ``url``, the click's response_url.
        """
        try:
            client = await delivery_client(self.clients, installation)
            await call(client.chat_postEphemeral, 1, text=text, blocks=blocks or None, **place)
        except DeliveryError as error:
            if url and not isinstance(error, DeliveryUnclear | AppUninstalled):
                await self.reply_to_click(url, text, blocks)
            else:
                log.warning("ephemeral message failed: %s", type(error).__name__)

    async def reply_to_click(self, url: str, text: str, blocks: Sequence[Block] = ()) -> None:
        """Post an ephemeral reply to a click's response_url; failures are only logged."""
        try:
            await reply_privately(url, text, blocks)
        except DeliveryError as error:
            log.warning("ephemeral message failed: %s", type(error).__name__)

    async def _update(self, to: SlackAddress, message: Json, rendered: SlackMessage, *, tries: int) -> None:
        client = await self._client_for(to)
        await call(
            client.chat_update,
            tries,
            channel=message["channel"],
            ts=message["ts"],
            text="\n".join(filter(None, [asked_line(to), rendered.text])),
            blocks=[*asked_blocks(to), *rendered.blocks],
            metadata=_metadata(to),
            **PLAIN,
        )

    async def share(self, url: str, stored: StoredAnswer) -> None:
        """Post a private answer to its channel through the click's response_url; raises as ``deliver``."""
        await share_to_channel(url, stored, self._sources_shown, offers_person=self._offers_person)

    async def delete(self, withdrawn: WithdrawnItem, claim: ClaimMessage) -> None:
        """Delete the answer to a deleted question, with its pictures; an orphaned stream is claimed first.

        Raises:
            DeliveryError: the outcome is unclear, Slack rate-limited us, or another question has the stream.
        """
        to = SlackAddress.from_json(withdrawn.address)
        try:
            client = await self._client_for(to)
        except AppUninstalled:
            return
        message = withdrawn.message or await self._find_unclear_message(withdrawn, claim)
        if message is None:
            return
        await self._streams.end(client, message, _metadata(to))
        pictures = await self._pictures_of(to, message)
        try:
            await call(client.chat_delete, 1, channel=message["channel"], ts=message["ts"])
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                raise
            log.info("deleting an answer failed: %s", error)
        if self._uploads:
            await self._uploads.delete(client, list(pictures.values()))
        await self._sessions.clear_deleted(client, to, message)

    async def _find_unclear_message(self, withdrawn: WithdrawnItem, claim: ClaimMessage) -> Json | None:
        """Search for a placeholder that may have been posted for a deleted question."""
        if not withdrawn.is_posting:
            return None
        message = await self.find_placeholder(withdrawn.address, withdrawn.others)
        if message and STREAM_KEY in message and not await claim(message):
            raise DeliveryUnclear("stream already claimed by another question")
        return message

    async def _pictures_of(self, to: SlackAddress, message: Json) -> dict[int, str]:
        """Return index of a figure -> Slack file id, from the posted message; empty if it cannot be read."""
        if self._uploads is None:
            return {}
        where = {"channel": message["channel"]} | ({"ts": to.thread} if to.thread else {})
        one = {"oldest": message["ts"], "latest": message["ts"], "inclusive": True, "limit": 2}
        try:
            client = await self._client_for(to)
            read = client.conversations_replies if to.thread else client.conversations_history
            reply = await call(read, 1, **where, **one)
        except DeliveryError as error:
            log.info("reading an answer's figures failed: %s", error)
            return {}
        blocks = [
            block
            for found in reply["messages"]  # conversations.replies always includes the parent message
            if found["ts"] == message["ts"]
            for block in found.get("blocks", ())
        ]
        return shown_pictures(blocks)

    async def clear_status(self, key: ChannelKey, thread: str) -> None:
        """Clear the "working" status of a thread's agent session; failures are only logged."""
        try:
            client = await delivery_client(self.clients, key.installation)
        except DeliveryError as error:
            log.info("could not clear Slack status: %s", error)
        else:
            await self._sessions.clear_status(client, key.conversation, thread)

    async def _client_for(self, to: SlackAddress) -> AsyncWebClient:
        """Return the client of the address's installation; raises as ``delivery_client``."""
        return await delivery_client(self.clients, to.installation)

    def announcement_address(self, channel: Channel, address: Json | None) -> Json:
        """Return the Slack channel of a tenant, the last part of its name."""
        _, installation, conversation = channel.tenant.split("_")
        return SlackAddress(conversation, f"{installation}:{conversation}").to_json()

    async def announce(self, place: Json, announcement: Announcement) -> None:
        """Post the announcement, with its id as metadata for ``has_announced``."""
        to = SlackAddress.from_json(place)
        rendered = render_announcement(announcement, news_row(announcement, to.tenant))
        client = await self._client_for(to)
        await call(
            client.chat_postMessage,
            channel=to.channel,
            thread_ts=to.receipt_thread,
            text=rendered.text,
            blocks=[*rendered.blocks, *question_blocks(announcement.questions, to.tenant)],
            metadata=_announcement_metadata(announcement.id),
            **PLAIN,
        )

    async def has_announced(self, place: Json, announcement: str, since: datetime) -> bool:
        """Page through the messages since then for one whose metadata names the announcement."""
        to = SlackAddress.from_json(place)
        client = await self._client_for(to)
        oldest = f"{(since - MAX_CLOCK_SKEW).timestamp():.6f}"
        where = {"channel": to.channel, "oldest": oldest}
        read: Callable[..., Awaitable[Any]] = client.conversations_history
        if to.receipt_thread:
            read, where["ts"] = client.conversations_replies, to.receipt_thread
        found = await find_message(read, partial(_has, _announcement_metadata(announcement)), **where)
        return found is not None


def _in_session(*, is_opened: bool) -> Json:
    """Return the mark of a message whose agent session has to be cleared after the answer."""
    return {"in_session": True} if is_opened else {}


def _metadata(to: SlackAddress) -> Json:
    return {"event_type": PLACEHOLDER, "event_payload": {"message_key": to.key}}


def _announcement_metadata(announcement: str) -> Json:
    return {"event_type": ANNOUNCEMENT, "event_payload": {"announcement": announcement}}


def _has(metadata: Json, message: Json) -> bool:
    return metadata.items() <= (message.get("metadata") or {}).items()
