"""Replies in Teams: a placeholder, then the answer in its place and a card with its sources below."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.core.conversation.feedback import FeedbackReply
from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import Answer, Language, SourceChange
from bot.core.notifications.notification_wording import TRY_ASKING
from bot.core.plaintext import tame
from bot.core.ports import Announcement, Hold, Keep
from bot.core.wording import reply_words
from bot.teams.activities import PersonalChat
from bot.teams.cards import (
    TeamsMessage,
    escape,
    render,
    render_announcement,
    render_beginning,
    render_whole,
    with_row,
)
from bot.teams.compose_extension import is_private
from bot.teams.connector import (
    Connector,
    card_activity,
    ending_stream,
    plain_activity,
    stream_activity,
    suggesting_activity,
    text_activity,
    typing_activity,
)
from bot.teams.feedback_actions import links_row, reply_card, takes_feedback, why_row
from bot.teams.question_actions import question_rows, shown_questions
from storage.chat_models import UPLOAD
from storage.crash_points import reach
from storage.models import Channel

Json = dict[str, Any]

# Streams of which the number of the next update is remembered.
MAX_STREAMS = 1000
# Stands for the placeholder of a question that the message extension asked, which nobody posts.
PRIVATE: Json = {"is_private": True}
# Stands for the id of a card that may have been posted.
UNSURE = ""

log = logging.getLogger(__name__)


class TeamsMessenger:
    """The core's ``Messenger`` and ``Announcer``; an address is what ``activities.read_activity`` made.

    The text is written over the placeholder and so never shows twice. The card is a message of its own,
    to which Teams gives an id as late as in its answer, and a bot may not read what it posted. So it is kept
    that the card is being posted, then its id, by which it is updated ever after. A card of which only the
    first is known is never posted again: then the text lists the sources.

    In a personal chat the placeholder is a stream, which the answer ends. Teams takes no more of one that
    is two minutes old, or ended: then the answer is written over it like over any placeholder.
    """

    def __init__(self, connector: Connector, sources_shown: int = 5) -> None:
        self.connector = connector
        self._sources_shown = sources_shown
        # Of the streams that this process began: the number of the next update.
        self._sequences: dict[str, int] = {}

    async def place(self, address: Json, language: Language, *, queued: str = "", asked: str = "") -> Json:
        """Show that we are at it, then post the placeholder."""
        if is_private(address):
            return dict(PRIVATE)
        said = reply_words(language)
        working = said.fetching if UPLOAD in address else said.searching
        text = queued or working
        # What waits for a file to be read may wait for longer than Teams lets a stream live.
        if (
            address.get("is_personal")
            and not queued
            and UPLOAD not in address
            and (stream := await self._begin_stream(address, text))
        ):
            return {"id": stream, "is_stream": True}
        with suppress(DeliveryError):
            await self.connector.post(address, typing_activity())
        return {"id": await self.connector.post(address, plain_activity(text))}

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Teams lets a bot read no messages: nothing can be found."""
        return dict(PRIVATE) if is_private(address) else None

    async def show(self, address: Json, message: Json, text: str) -> None:
        """Write the beginning of an answer over the placeholder, or into its stream."""
        if is_private(address):
            return
        if message.get("is_stream"):
            await self._update_stream(address, message["id"], text)
            return
        beginning = "\n\n".join(filter(None, (_asked(address), render_beginning(text))))
        await self.connector.put(address, message["id"], plain_activity(beginning), tries=1)

    async def deliver(self, address: Json, message: Json, answer: Answer, keep: Keep) -> None:
        """Write the answer over the placeholder, and its sources below it; a private one is fetched."""
        if is_private(address):
            return
        rendered = self._render(address, message, answer)
        is_asked = takes_feedback(answer)
        activity = text_activity(rendered, takes_feedback=is_asked)
        if message.get("is_stream"):
            await self._end_stream(address, message["id"], activity)
        else:
            await self.connector.put(address, message["id"], activity)
        card = rendered.card
        if is_asked and card and any(not one.host for one in answer.citations):
            card = with_row(card, links_row(answer, message["id"]))
        if is_asked and address.get("is_personal"):
            card = with_row(card, why_row(answer, message["id"]))
        if card:
            await self._show_card(address, message, card_activity(card, rendered.card_summary), keep)

    async def follow_up(self, address: Json, reply: FeedbackReply, message: str) -> None:
        """Say in a personal chat what follows a person's click; a refusal is logged and nothing else.

        ``message``: the id of the answer's message.
        """
        card = reply_card(reply, message)
        try:
            await self.connector.post(address, card_activity(card, tame(reply.text)))
        except DeliveryError as error:
            log.warning("nothing could be said to one person: %s", type(error).__name__)

    async def show_renewed(self, address: Json, answer: Answer, own_chat: PersonalChat) -> None:
        """Show sources with new links to whoever asked for them; a refusal is logged and nothing else.

        They come to the person's own chat with the bot; where Teams clearly takes nothing there, below
        their answer. That an answer has no sources any more is said below it, too.
        """
        activity = card_activity(render_whole(answer, self._sources_shown), tame(answer.text))
        is_for_one = answer.citations and not address.get("is_personal")
        try:
            if not is_for_one or not await self._post_to_one(address, own_chat, activity):
                await self.connector.post(address, activity)
        except DeliveryError as error:
            log.warning("new links could not be shown: %s", type(error).__name__)

    async def _post_to_one(self, address: Json, own_chat: PersonalChat, activity: Json) -> bool:
        """Post it in the bot's chat with a person; False: Teams does not take it there."""
        try:
            chat = await self.connector.open_chat(address, own_chat)
        except DeliveryError:  # even where nobody knows: a chat that was opened shows nothing yet
            return False
        try:
            await self.connector.post(address | {"conversation": chat}, activity)
        except DeliveryUnclear:
            raise
        except DeliveryError:
            return False
        return True

    async def illustrate(self, address: Json, message: Json, answer: Answer, hold: Hold) -> None:
        """Teams fetches the pictures that the card names."""

    async def revise(
        self, address: Json, message: Json, answer: Answer, changes: Sequence[SourceChange]
    ) -> None:
        """Write the text once more, below what became of its sources; the card stays as it was posted.

        A private one is out of reach.
        """
        if is_private(address):
            raise ChannelClosed("a private answer cannot be updated")
        rendered = self._render(address, message, answer, changes)
        activity = text_activity(rendered, takes_feedback=takes_feedback(answer))
        await self.connector.put(address, message["id"], activity, tries=1)

    async def retract(self, address: Json, message: Json, answer: Answer) -> None:
        """Write over the answer, and over its card where it is known; a private one is out of reach."""
        if is_private(address):
            raise ChannelClosed("a private answer cannot be updated")
        activity = text_activity(self._render(address, message, answer), takes_feedback=False)
        await self.connector.put(address, message["id"], activity, tries=1)
        if card := message.get("card"):
            await self.connector.put(address, card, activity, tries=1)

    def _render(
        self, address: Json, message: Json, answer: Answer, changes: Sequence[SourceChange] = ()
    ) -> TeamsMessage:
        is_unsure = message.get("card") == UNSURE
        rendered = render(answer, self._sources_shown, changes, lists_sources=is_unsure)
        asked = _asked(address)
        return replace(rendered, text=f"**{escape(asked)}**\n\n{rendered.text}") if asked else rendered

    def announcing_place(self, channel: Channel, address: Json | None) -> Json | None:
        """Return the channel itself, not the thread of its newest question, whose service URL it needs."""
        if address is None:
            return None
        conversation = address["conversation"].split(";messageid=", 1)[0]
        return address | {"conversation": conversation, "tenant": channel.tenant}

    async def announce(self, place: Json, announcement: Announcement) -> None:
        """Post one card: a message of its own. Questions of a personal chat are chips below a text."""
        card, summary = render_announcement(announcement)
        if place.get("is_personal") and announcement.questions and not announcement.sources:
            questions = shown_questions(announcement.questions)
            listed = "\n".join([TRY_ASKING, *(f"• {one}" for one in questions)])
            await self.connector.post(place, suggesting_activity(escape(f"{summary}\n{listed}"), questions))
            return
        card["body"] += question_rows(announcement.questions, place["tenant"])
        await self.connector.post(place, card_activity(card, summary))

    async def has_announced(self, place: Json, announcement: str, since: datetime) -> None:
        """Teams lets a bot read no messages: nobody can say."""

    async def _begin_stream(self, address: Json, text: str) -> str:
        """The id of a stream that says what is done; '' where Teams takes none: another one runs there."""
        try:
            stream = await self.connector.post(address, stream_activity(text, 1), tries=1)
        except DeliveryUnclear:
            raise
        except DeliveryError:
            return ""
        self._sequences[stream] = 2
        if len(self._sequences) > MAX_STREAMS:
            del self._sequences[next(iter(self._sequences))]
        return stream

    async def _update_stream(self, address: Json, stream: str, text: str) -> None:
        """Each update holds the text of those before, as the answer will have it."""
        if sequence := self._sequences.get(stream):
            self._sequences[stream] = sequence + 1
            activity = stream_activity(escape(tame(text).strip()), sequence, stream)
            await self.connector.post(address, activity, tries=1)

    async def _end_stream(self, address: Json, stream: str, activity: Json) -> None:
        """The answer, once: a stream that ended already is a message, which is updated."""
        self._sequences.pop(stream, None)
        try:
            await self.connector.post(address, ending_stream(activity, stream))
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                raise
            await self.connector.put(address, stream, activity)

    async def _show_card(self, address: Json, message: Json, activity: Json, keep: Keep) -> None:
        """Post the card, or update the one that was posted; one that may be there is left alone."""
        card = message.get("card")
        if card == UNSURE:
            return
        if card is not None:
            await self.connector.put(address, card, activity)
            return
        await keep(message | {"card": UNSURE})
        reach("before-card")
        try:
            card = await self.connector.post(address, activity)
        except DeliveryUnclear:
            raise
        except DeliveryError:
            await keep(message)
            raise
        reach("amid-card")
        await keep(message | {"card": card})
        reach("after-card")


def _asked(address: Json) -> str:
    """A question that a button asked, for it stands nowhere in the conversation; '' for one that does."""
    return tame(address.get("asked", ""))
