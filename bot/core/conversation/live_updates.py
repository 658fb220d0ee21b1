"""Shows an answer while it is written, in place of the placeholder; a failure here never fails the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from bot.core.errors import DeliveryUnclear
from bot.core.ports import AnswerListener
from storage.errors import raised_at

# Seconds between two texts: Slack takes 50 updates a minute.
UPDATE_SECONDS = 1.2
# How long a post of unclear outcome gets to appear before it is searched for, or written over.
UNCONFIRMED_SECONDS = 2

log = logging.getLogger(__name__)

Send = Callable[[str], Awaitable[None]]


@asynccontextmanager
async def live_updates(send: Send, pace: float = UPDATE_SECONDS) -> AsyncIterator[AnswerListener]:
    """Send the newest text that is shown in here, at this pace at most; at the end nothing is on its way."""
    shown = _LiveText(send, pace)
    sending = asyncio.create_task(shown.keep_sending())
    try:
        yield shown
    finally:
        shown.end()
        await sending


class _LiveText:
    """A text that grows, and what becomes of it."""

    def __init__(self, send: Send, pace: float) -> None:
        self._send = send
        self._pace = pace
        self._text = ""
        self._has_grown = asyncio.Event()
        self._is_over = asyncio.Event()

    def show(self, text: str) -> None:
        """Keep the text for the next update."""
        self._text = text
        self._has_grown.set()

    def end(self) -> None:
        """Send no more."""
        self._is_over.set()
        self._has_grown.set()

    async def keep_sending(self) -> None:
        """Until the end, or the first update that fails: then the answer itself is soon enough."""
        try:
            while True:
                await self._has_grown.wait()
                self._has_grown.clear()
                if self._is_over.is_set():
                    return
                await self._send(self._text)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_over.wait(), self._pace)
        except Exception as error:  # whatever it is, it must not cost an answer that is complete
            log.info("the answer is not shown while it is written: %s", raised_at(error))
            if isinstance(error, DeliveryUnclear):
                await asyncio.sleep(UNCONFIRMED_SECONDS)
