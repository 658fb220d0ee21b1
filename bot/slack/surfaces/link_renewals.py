"""Renewal of expired links: a click below an answer shows fresh ones to a current member of the channel.

The answer's message outlives its links, and the page of an expired link points back to that message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.core.conversation.feedback import AnswerFeedback
from bot.core.models import Answer, AnswerState
from bot.core.ports import ChatIntake
from bot.core.wording import reply_words
from bot.settings import BotSettings
from bot.slack.blocks import render
from bot.slack.events import SLACK
from bot.slack.feedback_buttons import FeedbackClick, read_feedback_click
from bot.slack.messenger import SlackMessenger
from bot.slack.private_questions import is_private, read_response_url
from bot.slack.workspace.memberships import Memberships


class LinkRenewals:
    """Handles clicks on "New links"."""

    def __init__(
        self,
        intake: ChatIntake,
        feedback: AnswerFeedback,
        memberships: Memberships,
        messenger: SlackMessenger,
        settings: BotSettings,
    ) -> None:
        """Let ``memberships`` decide who gets links; post them through ``messenger``."""
        self._intake = intake
        self._feedback = feedback
        self._memberships = memberships
        self._messenger = messenger
        self._settings = settings

    async def on_click(self, body: Mapping[str, Any], ack: Callable[[], Awaitable[Any]]) -> None:
        """Post the sources with renewed links as an ephemeral message.

        Raises:
            storage.errors.InfrastructureError: the database cannot be reached.
        """
        await ack()
        if (click := read_feedback_click(body)) is None or not click.wants_links:
            return
        asked = await self._feedback.question_of(click.key, click.message_key, click.language)
        if asked and await self._may_open(click):
            answer = await self._intake.renew_links(asked.channel_id, asked.id, click.language)
        else:
            answer = Answer(AnswerState.CHAT, reply_words(click.language).no_sources, language=click.language)
        shown = render(answer, self._settings.sources_shown)
        url = read_response_url(body, self._settings.slack_api_url)
        await self._messenger.post_ephemeral(
            click.key.installation, click.place, shown.text, shown.blocks, url
        )

    async def _may_open(self, click: FeedbackClick) -> bool:
        """True if Slack confirms in time that the person may read the channels the answer is from."""
        stored = await self._intake.answer_of(SLACK, click.message_key)
        if stored is None:
            return False
        if click.place["channel"].startswith("D"):
            return await self._memberships.may_see(stored)
        is_own = is_private(stored.address) and stored.address["user"] == click.user
        return is_own or await self._memberships.is_member(click.key, click.user)
