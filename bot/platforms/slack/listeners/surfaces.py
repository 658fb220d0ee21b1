"""Surfaces beside answers: App Home, a direct chat, links in messages, the Stop button."""

from __future__ import annotations

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.platforms.slack.events import STOPPED, read_stop
from bot.platforms.slack.listeners.context import SlackContext
from bot.platforms.slack.surfaces.agent_view import SuggestedPrompts
from bot.platforms.slack.surfaces.app_home import AppHome, read_opened
from bot.platforms.slack.surfaces.link_previews import LinkPreviews, read_shared_links


def listen(
    app: AsyncApp, slack: SlackContext, home: AppHome, prompts: SuggestedPrompts, previews: LinkPreviews
) -> None:
    """Register the listeners; all but Stop begin best-effort updates in the background."""

    @app.event("app_home_opened")
    async def on_opened(body: dict[str, Any]) -> None:
        if visit := read_opened(body, "home"):
            home.publish(visit)
        elif chat := read_opened(body, "messages"):
            prompts.open(chat.installation, chat.direct)

    @app.event("link_shared")
    async def on_links(body: dict[str, Any]) -> None:
        if links := read_shared_links(body):
            previews.add(links)

    @app.event(STOPPED)
    async def on_stopped(body: dict[str, Any]) -> None:
        """Stop the answers of a thread; if none is in progress, clear the status that Slack still shows."""
        if (stop := read_stop(body)) and not await slack.service.stop(stop):
            await slack.messenger.clear_status(stop.key, stop.thread)
