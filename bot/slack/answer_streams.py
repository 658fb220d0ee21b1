"""Slack's own streaming: the message of a question, which grows while a model answers.

It takes the place of the placeholder of a question in a channel.

Slack lets a stream carry no metadata before it ends, so nothing in it says whose it is. Where a crash, or a
broken connection, left streams in a thread that no question has, they stand for each other: each question
that may have begun one takes the first that is younger than itself, once for all in SQL, and its answer is
written over it. So none is taken twice, and none is left when all of them have looked.

Each proven sentence is a block of its own, as the answer will have it: what is streamed is no Markdown that
a document's words could turn into links. When the answer is complete the stream ends, and the answer is
written over it like over any placeholder. Where Slack has no streams, or has ended one, as it does after five
minutes, the message is updated as every other.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.core.errors import ChannelClosed, DeliveryError, DeliveryUnclear
from bot.slack.blocks import render_sentences
from bot.slack.web_api import MAX_TRIES, call
from storage.chat_models import STREAM, UPLOAD
from storage.clock import steady_seconds
from storage.recent_items import RecentItems

Json = dict[str, Any]

# No stream is begun for so long after Slack refused one of the same workspace.
QUIET_SECONDS = 300.0
# Installations of which that is known.
MAX_QUIET = 1000
# Sentences that are streamed; Slack takes 50 blocks.
MAX_BLOCKS = 40

log = logging.getLogger(__name__)


class AnswerStreams:
    """Begins streams, lets them grow, and ends them."""

    def __init__(self, *, is_wanted: bool) -> None:
        """``is_wanted``: a model writes answers, so that there is something to stream."""
        self._is_wanted = is_wanted
        # By installation: what one workspace refuses, another one may take.
        self._quiet_until: RecentItems[str, float] = RecentItems(MAX_QUIET)
        # What was shown in the streams that this process began, by their ts; None: it has ended.
        self._shown: dict[str, list[str] | None] = {}

    def may_hold(self, address: Json) -> bool:
        """True if the question of this address may have been given a stream; one about a file waits."""
        return (
            not address["channel"].startswith("D")
            and "asked" not in address
            and UPLOAD not in address
            and all(address.get(name) for name in ("thread", "user", "team", "bot"))
        )

    async def begin(self, client: AsyncWebClient, address: Json, searching: str) -> Json | None:
        """What names a new stream that says ``searching``; None where there is to be none.

        Raises:
            DeliveryUnclear: nobody knows whether it began.
            ChannelClosed: we may not write there.
        """
        installation = str(address["key"]).partition(":")[0]
        is_quiet = steady_seconds() < self._quiet_until.get(installation, 0.0)
        if not self._is_wanted or not self.may_hold(address) or is_quiet:
            return None
        try:
            reply = await call(
                client.chat_startStream,
                1,
                channel=address["channel"],
                thread_ts=address["thread"],
                recipient_user_id=address["user"],
                recipient_team_id=address["team"],
                chunks=[{"type": "task_update", "id": "search", "title": searching, "status": "in_progress"}],
            )
        except (DeliveryUnclear, ChannelClosed):
            raise
        except DeliveryError as error:
            self._quiet_until[installation] = steady_seconds() + QUIET_SECONDS
            log.info("answers are not streamed for a while: %s", error)
            return None
        self._shown[reply["ts"]] = []
        return {"channel": reply["channel"], "ts": reply["ts"], STREAM: True}

    async def grow(self, client: AsyncWebClient, message: Json, text: str) -> bool:
        """Append what ``text`` has beyond the text before; False when this is no stream that takes it.

        Raises:
            DeliveryError: Slack asked us to wait, or could not be reached.
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
            log.info("a stream takes no more before its answer: %s", error)
            return False
        parts.append(more)
        return True

    async def end(
        self, client: AsyncWebClient, message: Json, metadata: Json, *, is_last: bool = True
    ) -> bool:
        """End a stream, so that it can be written over; one that has ended already stays as it is.

        Whether Slack had ended it: then nobody has said yet that we are not at work any more.

        Args:
            client: of the message's workspace.
            message: a stream, or any other message, to which nothing happens.
            metadata: what it is found by from now on.
            is_last: its answer is complete.

        Raises:
            DeliveryError: Slack asked us to wait, or did not say what it did.
        """
        if STREAM not in message:
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
            log.debug("a stream had ended already: %s", error)
            return True
        return False


def is_unfinished(address: Json, taken: Collection[str], message: Json) -> bool:
    """True if a message of a thread is a stream that the question of an address may take."""
    is_ours = bool(address.get("bot")) and message.get("user") == address["bot"]
    is_free = not message.get("metadata") and message["ts"] not in taken
    return is_ours and is_free and float(message["ts"]) > float(address["ts"])
