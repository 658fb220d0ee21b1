"""Streams an answer into its placeholder while it is written; a failure here never fails the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from bot.core.errors import DeliveryUnclear
from bot.core.ports import AnswerListener
from storage.errors import raised_at

# Minimum interval between two updates: Slack accepts 50 a minute.
UPDATE_SECONDS = 1.2
# How long a post of unknown outcome gets to appear before it is searched for or overwritten.
UNCONFIRMED_SECONDS = 2

log = logging.getLogger(__name__)

Send = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def live_updates(send: Send, pace: float = UPDATE_SECONDS) -> AsyncIterator[AnswerListener]:
    """Yield a listener that sends the latest text every ``pace`` seconds; none is in flight on exit."""
    shown = _LiveText(send, pace)
    sending = asyncio.create_task(shown.keep_sending())
    try:
        yield shown
    finally:
        shown.end()
        await sending


class _LiveText:
    """A growing text, and the loop that sends it."""

    def __init__(self, send: Send, pace: float) -> None:
        self._send = send
        self._pace = pace
        self._text = ""
        self._has_grown = asyncio.Event()
        self._is_over = asyncio.Event()

    def show(self, text: str) -> None:
        """Store the text for the next update."""
        self._text = text
        self._has_grown.set()

    def end(self) -> None:
        """Stop sending."""
        self._is_over.set()
        self._has_grown.set()

    async def keep_sending(self) -> None:
        """Send updates until the end or the first failure; after that only the final answer is shown."""
        try:
            while True:
                await self._has_grown.wait()
                self._has_grown.clear()
                if self._is_over.is_set():
                    return
                await self._send(self._text)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_over.wait(), self._pace)
        except Exception as error:  # best effort: whatever it is, it must not fail a complete answer
            log.info("live updates stopped: %s", raised_at(error))
            if isinstance(error, DeliveryUnclear):
                await asyncio.sleep(UNCONFIRMED_SECONDS)
