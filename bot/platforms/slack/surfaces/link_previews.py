"""Link previews (unfurls) of our own links, only in messages of the channel that a link belongs to.

All readers of such a message are members of that channel. Links elsewhere, direct chats included, in channels
shared with another organisation, and in the message composer are not unfurled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.chat.chat_service import ChatService
from bot.core.plaintext import shorten, strip_hidden_chars
from bot.core.ports import LinkPreview
from bot.platforms.slack.blocks import Block, escape
from bot.platforms.slack.events import channel_of, event_of
from bot.platforms.slack.web_api import WebClients
from storage.errors import StorageError
from storage.models import ChannelKey
from storage.task_group import cancel_and_wait

Json = Mapping[str, Any]

# Links unfurled per message.
MAX_LINKS = 5
MAX_QUOTE_CHARS = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedLinks:
    """Links in a posted message."""

    key: ChannelKey
    ts: str
    urls: tuple[str, ...]


def read_shared_links(envelope: Json) -> SharedLinks | None:
    """Parse ``link_shared`` of a posted message; None for other events and in externally shared channels."""
    event, key = event_of(envelope)[0], channel_of(envelope)
    ts = str(event.get("message_ts") or "")
    if event.get("type") != "link_shared" or event.get("source") == "composer" or not ts:
        return None
    if envelope.get("is_ext_shared_channel") or key is None:
        return None
    urls = tuple(str(link.get("url") or "") for link in event.get("links") or ())
    return SharedLinks(key, ts, urls[:MAX_LINKS])


class LinkPreviews:
    """Unfurls links, best-effort: a link without a preview still works."""

    def __init__(self, clients: WebClients, service: ChatService) -> None:
        """Resolve links through ``service``, which accepts any valid one; the channel is checked here."""
        self._clients = clients
        self._service = service
        self._adding: set[asyncio.Task[None]] = set()

    def add(self, shared: SharedLinks) -> None:
        """Unfurl a message's links in the background."""
        task = asyncio.create_task(self._add(shared), name="link-previews")
        self._adding.add(task)
        task.add_done_callback(self._adding.discard)

    async def aclose(self) -> None:
        """Cancel unfurls in progress."""
        await cancel_and_wait(*self._adding)

    async def _add(self, shared: SharedLinks) -> None:
        try:
            found = {url: await self._service.preview(url) for url in shared.urls}
            unfurls = {
                url: {"blocks": preview_blocks(one)}
                for url, one in found.items()
                if one is not None and one.tenant == shared.key.tenant
            }
            if unfurls:
                client = await self._clients.client_for(shared.key.installation)
                await client.chat_unfurl(channel=shared.key.conversation, ts=shared.ts, unfurls=unfurls)
        except (SlackClientError, aiohttp.ClientError, TimeoutError, StorageError) as error:
            log.info("link unfurl failed: %s", type(error).__name__)


def preview_blocks(preview: LinkPreview) -> list[Block]:
    """Return blocks with the page that a link opens and the passage highlighted on it."""
    label = {"type": "plain_text", "text": strip_hidden_chars(preview.label), "emoji": False}
    blocks: list[Block] = [{"type": "context", "elements": [label]}]
    if preview.quote:
        quote = escape(shorten(strip_hidden_chars(" ".join(preview.quote.split())), MAX_QUOTE_CHARS))
        text = {"type": "mrkdwn", "text": f"“{quote}”", "verbatim": True}
        blocks.append({"type": "section", "text": text})
    return blocks
