"""*Ask a person* below an answer, and *Resolved* below the question that a person was asked to look at."""

from __future__ import annotations

import logging
from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.chat.conversation.handoffs import Handoff, Handoffs
from bot.core.errors import DeliveryError
from bot.core.models import Language
from bot.core.wording import reply_words
from bot.platforms.slack.address import SLACK, SlackAddress
from bot.platforms.slack.blocks import Block, SlackMessage, render
from bot.platforms.slack.feedback_buttons import FeedbackClick, handoff_row, read_feedback_click
from bot.platforms.slack.listeners.answer_buttons import may_see
from bot.platforms.slack.listeners.context import Acknowledge, SlackContext
from bot.platforms.slack.private_questions import read_response_url
from bot.platforms.slack.web_api import WebClients, call, delivery_client
from storage.models import ChannelKey

log = logging.getLogger(__name__)

Json = dict[str, Any]

_PLAIN: Json = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def listen(app: AsyncApp, slack: SlackContext) -> None:
    """Register the listeners of both buttons; both acknowledge first."""
    if slack.service.handoffs is None:
        return
    handoffs = slack.service.handoffs

    @app.action("feedback-person")
    async def on_person(body: dict[str, Any], ack: Acknowledge) -> None:
        await ack()
        if click := read_feedback_click(body):
            ts = str((body.get("message") or {}).get("ts") or "")
            text = await _ask_person(slack, handoffs, click, ts)
            url = read_response_url(body, slack.settings.slack_api_url)
            await slack.messenger.post_ephemeral(click.key.installation, click.place, text, (), url)

    @app.action("feedback-done")
    async def on_done(body: dict[str, Any], ack: Acknowledge) -> None:
        await ack()
        if (click := read_feedback_click(body)) is None:
            return
        asked = await slack.service.feedback.question_of(click.key, click.message_key, click.language)
        if asked:
            await handoffs.resolve(asked)
            message = body["message"] | {"channel": click.place["channel"]}
            clients = slack.messenger.clients
            await _mark_resolved(clients, click.key.installation, message, click.user, click.language)


async def _ask_person(slack: SlackContext, handoffs: Handoffs, click: FeedbackClick, ts: str) -> str:
    """Tell the first candidate who may be told; return the reply to the clicker."""
    words = reply_words(click.language)
    asked = await slack.service.feedback.question_of(click.key, click.message_key, click.language)
    handoff = await handoffs.prepare(asked, click.person) if asked and await may_see(slack, click) else None
    if asked is None or handoff is None:
        return words.feedback_expired
    told = await _place(slack, handoff, click, ts)
    if told is None:
        return words.nobody_to_ask
    user, place = told
    if not await handoffs.open(asked, (click.key.installation, click.user)):
        return words.person_asked
    row = handoff_row(click.key.tenant, click.language, click.message_key)
    message = render(handoff.message, slack.settings.sources_shown, row=row)
    try:
        people = (user, click.user)
        await _tell_person(slack.messenger.clients, click.key.installation, place, people, message)
    except DeliveryError as error:
        log.warning("asking a person failed: %s", error)
        return words.nobody_to_ask
    return words.person_told


async def _place(
    slack: SlackContext, handoff: Handoff, click: FeedbackClick, ts: str
) -> tuple[str, dict[str, Any]] | None:
    """Return the person to tell and where: a member in the thread, else in their direct chat.

    None if no candidate is a member of the documents' channel or was configured as their owner.
    """
    stored = await slack.service.answer_of(click.message_key)
    channel = handoff.channel.tenant.rpartition("_")[2]
    is_private = stored is not None and SlackAddress.from_json(stored.address).is_private
    is_public = click.place["channel"] == channel and not is_private
    for one in handoff.candidates:
        is_member = not handoff.channel.is_local and await slack.memberships.is_member(
            ChannelKey(SLACK, click.key.installation, channel), one.user
        )
        if is_member and is_public:
            return one.user, {"channel": channel, "thread_ts": click.place.get("thread_ts") or ts}
        if is_member or one.is_owner:
            return one.user, {"channel": one.user}
    return None


async def _tell_person(
    clients: WebClients, installation: str, place: Json, people: tuple[str, str], message: SlackMessage
) -> None:
    """Post a question for a person in its thread, or in their direct chat with the bot.

    Raises:
        DeliveryError: Slack refused, or could not be reached.
    """
    mentions = " · ".join(f"<@{one}>" for one in people)
    client = await delivery_client(clients, installation)
    text, blocks = f"{mentions}\n{message.text}", [_context(mentions), *message.blocks]
    await call(client.chat_postMessage, text=text, blocks=blocks, **place, **_PLAIN)


async def _mark_resolved(
    clients: WebClients, installation: str, message: Json, user: str, language: Language
) -> None:
    """Replace the buttons of such a message by who resolved it; failures are only logged."""
    words = f"✅ {reply_words(language).resolved} · <@{user}>"
    kept = [one for one in message.get("blocks", ()) if one["type"] != "actions"]
    where = {"channel": message["channel"], "ts": message["ts"]}
    try:
        client = await delivery_client(clients, installation)
        text, blocks = str(message.get("text") or words), [*kept, _context(words)]
        await call(client.chat_update, text=text, blocks=blocks, **where, **_PLAIN)
    except DeliveryError as error:
        log.warning("marking a question as resolved failed: %s", error)


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}
