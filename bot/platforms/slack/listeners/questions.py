"""Questions asked without a message: by a button, the slash command or the message shortcut."""

from __future__ import annotations

import re
from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.answers.understanding.question_terms import language_of
from bot.core.models import Language
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.listeners.context import Acknowledge, SlackContext
from bot.platforms.slack.private_questions import SHORTCUT, acknowledgement, read_command, read_shortcut
from bot.platforms.slack.question_buttons import ACTION, read_question_click
from bot.platforms.slack.surfaces.app_home import AppHome

# Admins may name the command as they like.
ANY_COMMAND = re.compile("^/")


def listen(app: AsyncApp, slack: SlackContext, home: AppHome) -> None:
    """Register the listeners of buttons, command and shortcut."""
    api_url = slack.settings.slack_api_url

    @app.action(ACTION)
    async def on_click(body: dict[str, Any], ack: Acknowledge) -> None:
        if message := read_question_click(body) or await home.read_click(body):
            await slack.enqueue(message)
        await ack()

    @app.command(ANY_COMMAND)
    async def on_command(body: dict[str, Any], ack: Acknowledge) -> None:
        if (message := read_command(body, api_url)) is None:
            await ack()
            return
        await slack.enqueue(message)
        language = language_of(message.text) or Language.ENGLISH
        text = acknowledgement(SlackAddress.from_json(message.address), language)
        await ack(text=text, response_type="ephemeral")

    @app.message_shortcut(SHORTCUT)
    async def on_shortcut(body: dict[str, Any], ack: Acknowledge) -> None:
        if message := read_shortcut(body, api_url):
            await slack.enqueue(message)
        await ack()
