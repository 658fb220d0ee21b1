"""Streaming answers in Slack: a message that grows while the model writes (chat.startStream and friends).

In channels the stream takes the place of the placeholder.

Recovery after a crash: Slack accepts no metadata on a stream before it ends, so an orphaned stream does not
say which question it belongs to. Orphans in a thread are interchangeable: each question that may have begun
one claims the first that is younger than itself, exclusively in SQL, and its answer is written over it. So no
stream is claimed twice, and none is left over once every such question has searched.

Each verified sentence is streamed as one block, as in the final answer, never as Markdown, in which a
document's words could become links. When the answer is complete the stream is ended and then updated like any
placeholder. Where Slack offers no streams, or has ended one (it does so after five minutes), the message is
updated with chat.update instead.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.platforms.slack.address import SlackAddress
from bot.platforms.slack.blocks import render_sentences
from bot.platforms.slack.web_api import MAX_TRIES, call
from storage.chat_models import STREAM_KEY
from storage.clock import monotonic_seconds
from storage.lru_cache import LRUCache

Json = dict[str, Any]

# Circuit breaker: no new stream in a workspace for this long after Slack refused one there.
BREAKER_SECONDS = 300.0
# Installations whose refusal is remembered.
MAX_TRACKED = 1000
# Streamed sentences, one block each; Slack accepts 50 blocks in a message.
MAX_BLOCKS = 40

log = logging.getLogger(__name__)


class AnswerStreams:
    """Begins, appends to and ends streams."""

    def __init__(self, *, is_wanted: bool) -> None:
        """Stream only if ``is_wanted``: a model writes the answers, so there is text to stream."""
        self._is_wanted = is_wanted
        # Per installation, because another workspace may accept streams; monotonic seconds.
        self._disabled_until: LRUCache[str, float] = LRUCache(MAX_TRACKED)
        # Text chunks sent, by ts, for streams that this process began; None: the stream has ended.
        self._shown: dict[str, list[str] | None] = {}

    async def begin(self, client: AsyncWebClient, address: SlackAddress, searching: str) -> Json | None:
        """Begin a stream whose task is titled ``searching``; return its message, or None without a stream.

        Raises:
            DeliveryUnclear: the stream may or may not have begun.
            ChannelClosed: we may not post there.
        """
        is_disabled = monotonic_seconds() < self._disabled_until.get(address.installation, 0.0)
        if not self._is_wanted or not address.is_streamable or is_disabled:
            return None
        try:
            reply = await call(
                client.chat_startStream,
                1,
                channel=address.channel,
                thread_ts=address.thread,
                recipient_user_id=address.user,
                recipient_team_id=address.team,
                chunks=[{"type": "task_update", "id": "search", "title": searching, "status": "in_progress"}],
            )
        except (DeliveryUnclear, ChannelClosed):
            raise
        except DeliveryError as error:
            self._disabled_until[address.installation] = monotonic_seconds() + BREAKER_SECONDS
            log.info("streaming disabled temporarily: %s", error)
            return None
        self._shown[reply["ts"]] = []
        return {"channel": reply["channel"], "ts": reply["ts"], STREAM_KEY: True}

    async def append(self, client: AsyncWebClient, message: Json, text: str) -> bool:
        """Append the part of ``text`` not streamed yet; False if the message is not a stream open for it.

        Raises:
            DeliveryError: Slack rate-limited us, or could not be reached.
        """
        parts = self._shown.get(message["ts"])
        shown = "".join(parts or ())
        if parts is None or not text.startswith(shown):
            return False
        more = text[len(shown) :]
        if not more.strip() or len(parts) >= MAX_BLOCKS:
            return True
        try:
            await call(
                client.chat_appendStream,
                1,
                channel=message["channel"],
                ts=message["ts"],
                chunks=[{"type": "blocks", "blocks": [render_sentences(more)]}],
            )
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                raise
            log.info("stream append failed: %s", error)
            return False
        parts.append(more)
        return True

    async def end(
        self, client: AsyncWebClient, message: Json, metadata: Json, *, is_last: bool = True
    ) -> bool:
        """End a stream, so that it can be updated.

        Return True if it had ended before: then the session's status has not been cleared yet.

        Args:
            message: a stream; nothing happens to any other message.
            metadata: set on the ended stream, for ``find_placeholder``.
            is_last: the answer is complete.

        Raises:
            DeliveryError: Slack rate-limited us, or the outcome is unclear.
        """
        if STREAM_KEY not in message:
            return False
        has_ended = self._shown.pop(message["ts"], []) is None
        if not is_last:
            self._shown[message["ts"]] = None
        if has_ended:
            return True
        try:
            await call(
                client.chat_stopStream,
                MAX_TRIES,
                channel=message["channel"],
                ts=message["ts"],
                metadata=metadata,
            )
        except DeliveryUnclear:
            raise
        except DeliveryError as error:
            if error.retry_after is not None:
                raise
            log.debug("stream already ended: %s", error)
            return True
        return False


def is_orphaned_stream(address: SlackAddress, taken: Collection[str], message: Json) -> bool:
    """True if a thread's message is an orphaned stream that the question at ``address`` may claim.

    It is ours, has no metadata, belongs to no other question (``taken``) and is younger than the question.
    """
    is_ours = bool(address.bot) and message.get("user") == address.bot
    is_free = not message.get("metadata") and message["ts"] not in taken
    return is_ours and is_free and float(message["ts"]) > float(address.ts)
