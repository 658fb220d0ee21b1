"""Buttons below answers: sources, feedback and "Why?".

The answer's message outlives its links, and the page of an expired link points back to that message.
"""

from __future__ import annotations

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.chat.conversation.feedback import FeedbackReply
from bot.core.models import Answer, AnswerState
from bot.core.wording import reply_words
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.blocks import render
from bot.platforms.slack.feedback_buttons import (
    ACTION,
    LINKS,
    SOURCE,
    FeedbackClick,
    opened_url,
    read_feedback_click,
    reply_blocks,
)
from bot.platforms.slack.listeners.context import Acknowledge, SlackContext
from bot.platforms.slack.private_questions import read_response_url
from storage.chat.feedback import FeedbackVerdict


def listen(app: AsyncApp, slack: SlackContext) -> None:
    """Register the listeners of feedback and sources."""

    @app.action(SOURCE)
    async def on_source(body: dict[str, Any], ack: Acknowledge) -> None:
        """Post the sources with new links as an ephemeral message, if the clicked link has ended."""
        await ack()
        click, url = read_feedback_click(body), opened_url(body)
        if click is None or click.said != LINKS or not await slack.service.has_ended(url):
            return
        asked = await slack.service.feedback.question_of(click.key, click.message_key, click.language)
        if asked and await _may_open(slack, click):
            answer = await slack.service.renew_links(asked.channel_id, asked.id, click.language)
        else:
            answer = Answer(AnswerState.CHAT, reply_words(click.language).no_sources, language=click.language)
        shown = render(answer, slack.settings.sources_shown)
        reply_url = read_response_url(body, slack.settings.slack_api_url)
        await slack.messenger.post_ephemeral(
            click.key.installation, click.place, shown.text, shown.blocks, reply_url
        )

    @app.action(ACTION)
    async def on_feedback(body: dict[str, Any], ack: Acknowledge) -> None:
        """Store the feedback, acknowledge, then reply in an ephemeral message that is not retried."""
        click = read_feedback_click(body)
        reply = await _reply_to(slack, click) if click else None
        await ack()
        if click and reply:
            url = read_response_url(body, slack.settings.slack_api_url)
            await slack.messenger.post_ephemeral(
                click.key.installation, click.place, reply.text, reply_blocks(reply, click), url
            )


async def _reply_to(slack: SlackContext, click: FeedbackClick) -> FeedbackReply:
    feedback = slack.service.feedback
    asked = await feedback.question_of(click.key, click.message_key, click.language)
    if asked and not await may_see(slack, click):
        asked = None
    if click.said not in set(FeedbackVerdict):
        return FeedbackReply(await feedback.why(asked, click.language))
    person, verdict = (click.key.installation, click.user), FeedbackVerdict(click.said)
    return await feedback.take(asked, person, verdict, page=click.page, language=click.language)


async def may_see(slack: SlackContext, click: FeedbackClick) -> bool:
    """True if the clicker may see details of the answer.

    In a channel every member may. In a direct chat the answer may come from channels that the person has
    left since, so memberships are checked again.
    """
    if not click.place["channel"].startswith("D"):
        return True
    stored = await slack.service.answer_of(click.message_key)
    return stored is not None and await slack.memberships.may_see(stored)


async def _may_open(slack: SlackContext, click: FeedbackClick) -> bool:
    """True if Slack confirms in time that the person may read the channels the answer is from."""
    stored = await slack.service.answer_of(click.message_key)
    if stored is None:
        return False
    if click.place["channel"].startswith("D"):
        return await slack.memberships.may_see(stored)
    address = SlackAddress.from_json(stored.address)
    is_own = address.is_private and address.user == click.user
    return is_own or await slack.memberships.is_member(click.key, click.user)
