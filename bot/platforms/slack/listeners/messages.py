"""Messages: questions, edits, deletions, and mentions by people of other organisations."""

from __future__ import annotations

from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.answers.understanding.question_terms import language_of
from bot.core.models import Language
from bot.core.wording import reply_words
from bot.platforms.slack.events import (
    adds_mention,
    event_of,
    installation_of,
    read_edit,
    read_outsider,
    read_withdrawal,
)
from bot.platforms.slack.listeners.context import SlackContext
from bot.platforms.slack.workspace.shared_files import read_messages


def listen(app: AsyncApp, slack: SlackContext) -> None:
    """Register the listener of messages and mentions."""
    follow_ups = slack.settings.thread_follow_ups

    @app.event("app_mention")
    @app.event("message")
    async def on_message(body: dict[str, Any]) -> None:
        service = slack.service
        if key := read_withdrawal(body):
            if withdrawn := await service.withdraw(key):
                await slack.messenger.delete(withdrawn, partial(service.claim_message, key))
        elif edited := read_edit(body, follow_ups=follow_ups):
            if not await service.edit(edited) and adds_mention(body):
                await slack.enqueue(edited)
        elif messages := read_messages(body, service.accepts_files, follow_ups=follow_ups):
            for message in messages:
                await slack.enqueue(message)
        else:
            await _reply_to_outsider(slack, body)


async def _reply_to_outsider(slack: SlackContext, body: dict[str, Any]) -> None:
    """Reply to a person of another organisation, in an ephemeral message, that we cannot answer them."""
    if asked := read_outsider(body):
        place, text = asked
        words = reply_words(language_of(text) or Language.ENGLISH)
        installation = installation_of(event_of(body)[1])
        await slack.messenger.post_ephemeral(installation, place, words.outsider, ())
