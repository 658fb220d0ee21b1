"""Sharing of private answers with their channel."""

from __future__ import annotations

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.core.errors import DeliveryError, DeliveryUnclear
from bot.core.ports import StoredAnswer
from bot.core.wording import reply_words
from bot.platforms.slack.address import SLACK, SlackAddress
from bot.platforms.slack.listeners.context import Acknowledge, SlackContext
from bot.platforms.slack.private_questions import SHARE, may_share, read_share
from storage.models import ChannelKey


def listen(app: AsyncApp, slack: SlackContext) -> None:
    """Register the listener of Share."""

    @app.action(SHARE)
    async def on_share(body: dict[str, Any], ack: Acknowledge) -> None:
        if shared := read_share(body, slack.settings.slack_api_url):
            key, url = shared
            stored = await slack.service.answer_of(key)
            if stored is not None and may_share(body, SlackAddress.from_json(stored.address)):
                await _share_once(slack, key, url, stored)
        await ack()


async def _share_once(slack: SlackContext, message_key: str, url: str, stored: StoredAnswer) -> None:
    """Post a private answer to its channel, once, if its asker is still a member there."""
    address = SlackAddress.from_json(stored.address)
    channel = ChannelKey(SLACK, address.installation, address.channel)
    is_member = await slack.memberships.is_member(channel, address.user)
    if not is_member or not await slack.memberships.may_see(stored):
        await slack.messenger.reply_to_click(url, reply_words(stored.answer.language).not_shared)
        return
    if not await slack.service.set_shared(message_key, is_shared=True):
        return
    try:
        await slack.messenger.share(url, stored)
    except DeliveryUnclear:  # it may have been posted: stay marked as shared, so never post it twice
        raise
    except DeliveryError:
        await slack.service.set_shared(message_key, is_shared=False)
        raise
