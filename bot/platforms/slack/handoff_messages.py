"""Messages that ask a person to look at a question, and their state."""

from __future__ import annotations

import logging
from typing import Any

from bot.core.errors import DeliveryError
from bot.core.models import Language
from bot.core.wording import reply_words
from bot.platforms.slack.blocks import Block, SlackMessage
from bot.platforms.slack.web_api import WebClients, call, delivery_client

Json = dict[str, Any]

log = logging.getLogger(__name__)


async def tell_person(
    clients: WebClients, installation: str, place: Json, people: tuple[str, str], message: SlackMessage
) -> None:
    """Post a question for a person in its thread, or in their direct chat with the bot.

    Args:
        clients: Web API clients per installation.
        installation: the workspace.
        place: arguments of chat.postMessage; a user id as ``channel`` is their direct chat.
        people: user ids of that person and of the asker.
        message: question, reply and sources.

    Raises:
        DeliveryError: Slack refused, or could not be reached.
    """
    mentions = " · ".join(f"<@{one}>" for one in people)
    client = await delivery_client(clients, installation)
    text, blocks = f"{mentions}\n{message.text}", [_context(mentions), *message.blocks]
    await call(client.chat_postMessage, text=text, blocks=blocks, **place, **_PLAIN)


async def mark_resolved(
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


_PLAIN: Json = {"parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}
