"""Teams messenger: posts a placeholder, updates it with the answer, posts a card of pictures below."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.chat.conversation.feedback import FeedbackReply
from bot.chat.conversation.handoffs import Handoff
from bot.chat.notifications.notification_wording import TRY_ASKING
from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.core.models import Answer, Language, SourceChange
from bot.core.plaintext import strip_hidden_chars
from bot.core.ports import Announcement, RenewLease, SaveMessage
from bot.core.wording import reply_words
from bot.platforms.teams.address import TeamsAddress
from bot.platforms.teams.cards import (
    TeamsMessage,
    escape,
    render,
    render_announcement,
    render_beginning,
    render_card,
    with_action,
    with_row,
)
from bot.platforms.teams.connector import (
    Connector,
    card_activity,
    final_activity,
    plain_activity,
    stream_activity,
    suggested_actions_activity,
    text_activity,
    typing_activity,
)
from bot.platforms.teams.feedback_actions import (
    FeedbackAction,
    answer_row,
    handoff_card,
    reply_card,
    resolved_card,
    takes_feedback,
)
from bot.platforms.teams.question_actions import news_button, question_rows, shown_questions
from bot.settings import BotSettings
from storage.crash_points import reach
from storage.models import Channel

Json = dict[str, Any]

# Streams whose sequence number is remembered; the oldest is evicted.
MAX_STREAMS = 1000
# Message of a question from the message extension: it has no placeholder.
PRIVATE: Json = {"is_private": True}
# Stored in place of a card's id while it is unknown whether the card was posted.
CARD_MAYBE_POSTED = ""

log = logging.getLogger(__name__)


class TeamsMessenger:
    """``Messenger`` and ``Announcer`` for Teams; addresses are made by ``activities.read_activity``.

    The text updates the placeholder, so it never appears twice; it has the sources as links. Pictures and the
    buttons of a personal chat need a card. It ends a stream together with the text; elsewhere it is a message
    of its own whose id is known only from Teams' response, and a bot cannot read messages. So a marker
    (CARD_MAYBE_POSTED) is stored before the post and the id after it; later deliveries update the card by id.
    A card left at the marker is never posted again (at-most-once).

    In a personal chat the placeholder is a stream, which the answer ends. Teams closes streams after two
    minutes; then the answer updates the message like any placeholder.
    """

    def __init__(self, connector: Connector, settings: BotSettings) -> None:
        self.connector = connector
        self._sources_shown = settings.sources_shown
        self._offers_person = settings.ask_person
        # Stream id -> sequence number of the next update, for streams that this process began.
        self._sequences: dict[str, int] = {}

    async def post_placeholder(
        self, address: Json, language: Language, *, queued: str = "", asked: str = ""
    ) -> Json:
        """Post the placeholder: a stream in a personal chat, else a typing indicator and a message."""
        if (to := TeamsAddress.from_json(address)).is_private:
            return dict(PRIVATE)
        said = reply_words(language)
        working = said.fetching if to.upload else said.searching
        text = queued or working
        # A queued question, or one about a file, may wait longer than a stream lives.
        is_streamable = to.is_personal and not queued and not to.upload
        if is_streamable and (stream := await self._begin_stream(to, text)):
            return {"id": stream, "is_stream": True}
        with suppress(DeliveryError):
            await self.connector.post(to, typing_activity())
        return {"id": await self.connector.post(to, plain_activity(text))}

    async def find_placeholder(self, address: Json, others: Sequence[Json] = ()) -> Json | None:
        """Return None: bots cannot read messages in Teams."""
        return dict(PRIVATE) if TeamsAddress.from_json(address).is_private else None

    async def show_partial(self, address: Json, message: Json, text: str) -> None:
        """Show the first sentences: update the stream or the placeholder."""
        if (to := TeamsAddress.from_json(address)).is_private:
            return
        if message.get("is_stream"):
            await self._update_stream(to, message["id"], text)
            return
        beginning = "\n\n".join(filter(None, (strip_hidden_chars(to.asked), render_beginning(text))))
        await self.connector.put(to, message["id"], plain_activity(beginning), tries=1)

    async def deliver(self, address: Json, message: Json, answer: Answer, save: SaveMessage) -> None:
        """Update the placeholder with the answer, and show the card of its pictures and buttons.

        Nothing is posted for a private question: the message extension fetches its answer.
        """
        if (to := TeamsAddress.from_json(address)).is_private:
            return
        rendered = self._render(to, answer)
        is_asked, card = takes_feedback(answer), rendered.card
        row = answer_row(answer, message["id"], is_personal=to.is_personal, offers_person=self._offers_person)
        card = with_row(card, row) if row else card
        activity = text_activity(rendered, takes_feedback=is_asked)
        if message.get("is_stream"):
            if await self._end_stream(to, message, activity, card, save):
                return
        else:
            await self.connector.put(to, message["id"], activity)
        if card:
            await self._show_card(to, message, card_activity(card, rendered.card_summary), save)

    async def follow_up(self, to: TeamsAddress, reply: FeedbackReply, message: str) -> None:
        """Post the reply to feedback in a personal chat; failures are only logged.

        ``message``: id of the answer's message.
        """
        card = reply_card(reply, message)
        try:
            await self.connector.post(to, card_activity(card, strip_hidden_chars(reply.text)))
        except DeliveryError as error:
            log.warning("follow-up message failed: %s", type(error).__name__)

    async def tell_person(self, action: FeedbackAction, handoff: Handoff) -> bool:
        """Tell the first candidate who is a member, below the answer, or an owner, in their own chat.

        False if there is none. In a personal chat a candidate must be an owner: nobody else is a member.

        Raises:
            DeliveryError: Teams refused, or could not be reached.
        """
        address, message = action.place.address, handoff.message
        summary, card = strip_hidden_chars(message.text), render_card(message, self._sources_shown)
        for one in handoff.candidates:
            is_channel = not action.place.address.is_personal
            if is_channel and (member := await self.connector.member(address, one.user)):
                shown = handoff_card(card, action, member, message.language)
                await self.connector.post(address, card_activity(shown, summary))
                return True
            if one.is_owner:
                own = action.own_chat._replace(member=one.user)
                chat = await self.connector.open_chat(address, own)
                shown = handoff_card(card, action, None, message.language)
                await self.connector.post(replace(address, conversation=chat), card_activity(shown, summary))
                return True
        return False

    async def mark_resolved(self, action: FeedbackAction, language: Language) -> None:
        """Replace the card of such a question; failures are only logged."""
        words = resolved_card(language)
        try:
            await self.connector.put(
                action.place.address, action.card, card_activity(words, reply_words(language).resolved)
            )
        except DeliveryError as error:
            log.warning("marking a question as resolved failed: %s", error)

    async def attach_figures(self, address: Json, message: Json, answer: Answer, renew: RenewLease) -> None:
        """Do nothing: Teams fetches the images that the card links to."""

    async def revise(
        self, address: Json, message: Json, answer: Answer, changes: Sequence[SourceChange]
    ) -> None:
        """Update the text with notes on changed sources; the card is left unchanged.

        Raises:
            ChannelClosed: the answer is private.
            DeliveryError: Teams refused, or could not be reached.
        """
        if (to := TeamsAddress.from_json(address)).is_private:
            raise ChannelClosed("a private answer cannot be updated")
        rendered = self._render(to, answer, changes)
        activity = text_activity(rendered, takes_feedback=takes_feedback(answer))
        await self.connector.put(to, message["id"], activity, tries=1)

    async def replace_erased(self, address: Json, message: Json, answer: Answer) -> None:
        """Replace an erased answer's text, and its card if its id is known; raises as ``revise``."""
        if (to := TeamsAddress.from_json(address)).is_private:
            raise ChannelClosed("a private answer cannot be updated")
        activity = text_activity(self._render(to, answer), takes_feedback=False)
        await self.connector.put(to, message["id"], activity, tries=1)
        if card := message.get("card"):
            await self.connector.put(to, card, activity, tries=1)

    def _render(self, to: TeamsAddress, answer: Answer, changes: Sequence[SourceChange] = ()) -> TeamsMessage:
        rendered = render(answer, changes)
        asked = strip_hidden_chars(to.asked)
        return replace(rendered, text=f"**{escape(asked)}**\n\n{rendered.text}") if asked else rendered

    def announcement_address(self, channel: Channel, address: Json | None) -> Json | None:
        """Return the channel without a thread; its service URL comes from the newest question's address."""
        if address is None:
            return None
        return replace(TeamsAddress.from_json(address).without_thread(), tenant=channel.tenant).to_json()

    async def announce(self, place: Json, announcement: Announcement) -> None:
        """Post an announcement as a card; in a personal chat, questions become suggested actions."""
        to = TeamsAddress.from_json(place)
        card, summary = render_announcement(announcement)
        if to.is_personal and announcement.questions and not announcement.sources:
            questions = shown_questions(announcement.questions)
            listed = "\n".join([TRY_ASKING, *(f"• {one}" for one in questions)])
            await self.connector.post(
                to, suggested_actions_activity(escape(f"{summary}\n{listed}"), questions)
            )
            return
        if announcement.asks_news:
            card = with_action(card, news_button(announcement.asks_news, to.tenant))
        card["body"] += question_rows(announcement.questions, to.tenant)
        await self.connector.post(to, card_activity(card, summary))

    async def has_announced(self, place: Json, announcement: str, since: datetime) -> None:
        """Return None: bots cannot read messages in Teams."""

    async def _begin_stream(self, to: TeamsAddress, text: str) -> str:
        """Begin a stream and return its id; '' if Teams refuses, as while another stream is open there."""
        try:
            stream = await self.connector.post(to, stream_activity(text, 1), tries=1)
        except DeliveryUnclear:
            raise
        except DeliveryError:
            return ""
        self._sequences[stream] = 2
        if len(self._sequences) > MAX_STREAMS:
            del self._sequences[next(iter(self._sequences))]
        return stream

    async def _update_stream(self, to: TeamsAddress, stream: str, text: str) -> None:
        """Update a stream; each update repeats the text of the previous ones."""
        if sequence := self._sequences.get(stream):
            self._sequences[stream] = sequence + 1
            activity = stream_activity(escape(strip_hidden_chars(text).strip()), sequence, stream)
            await self.connector.post(to, activity, tries=1)

    async def _end_stream(
        self, to: TeamsAddress, message: Json, activity: Json, card: Json | None, save: SaveMessage
    ) -> bool:
        """End a stream with the answer and its card; if it has ended, update its text and return False."""
        stream = message["id"]
        self._sequences.pop(stream, None)
        if card and "card" not in message:
            await save(message | {"card": CARD_MAYBE_POSTED})
            reach("before-card")
        else:
            card = None
        try:
            await self.connector.post(to, final_activity(activity, stream, card))
            reach("amid-card")
            reach("after-card")
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if card:
                await save(message)
            if error.retry_after is not None:
                raise
            await self.connector.put(to, stream, activity)
            return False
        return True

    async def _show_card(self, to: TeamsAddress, message: Json, activity: Json, save: SaveMessage) -> None:
        """Post the card, or update it by its id; leave it alone if it may have been posted."""
        card = message.get("card")
        if card == CARD_MAYBE_POSTED:
            return
        if card is not None:
            await self.connector.put(to, card, activity)
            return
        # Write-ahead: a crash between post and id must not post a second card.
        await save(message | {"card": CARD_MAYBE_POSTED})
        reach("before-card")
        try:
            card = await self.connector.post(to, activity)
        except DeliveryUnclear:
            raise
        except DeliveryError:  # surely not posted: clear the marker, so that a retry posts it
            await save(message)
            raise
        reach("amid-card")
        await save(message | {"card": card})
        reach("after-card")
