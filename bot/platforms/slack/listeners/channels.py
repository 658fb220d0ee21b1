"""Channels that the bot joined or left, or whose id Slack changed."""

from __future__ import annotations

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.platforms.slack.events import LEFT, read_join, read_leave
from bot.platforms.slack.listeners.context import SlackContext
from bot.platforms.slack.workspace.moved_channels import CHANGED, ChannelIdMap, read_move


def listen(app: AsyncApp, slack: SlackContext, channel_ids: ChannelIdMap) -> None:
    """Register the listeners of joins, leaves and changed ids."""

    @app.event(CHANGED)
    async def on_changed(body: dict[str, Any]) -> None:
        if move := read_move(body):
            await slack.service.move(*move)
            channel_ids.invalidate()

    @app.event("member_joined_channel")
    async def on_joined(body: dict[str, Any]) -> None:
        if joined := read_join(body):
            await slack.service.join(joined)
            slack.names.refresh(joined)

    async def on_left(body: dict[str, Any]) -> None:
        if left := read_leave(body):
            await slack.service.leave(left)

    for event in LEFT:
        app.event(event)(on_left)
