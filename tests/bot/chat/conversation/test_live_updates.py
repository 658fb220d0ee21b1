"""Live drafts while an answer is written: throttled, best-effort, and finished before the answer."""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.chat.conversation.live_updates import UNCONFIRMED_SECONDS, live_updates
from bot.core.errors import DeliveryError, DeliveryUnclear
from storage.errors import DatabaseUnavailable, LeaseLost


class Place:
    """A target for texts; each write takes time and may fail."""

    def __init__(self, *errors: Exception, seconds: float = 0) -> None:
        self.stands: list[str] = []
        self.at_work = 0
        self._errors = list(errors)
        self._seconds = seconds

    async def write(self, text: str) -> None:
        self.at_work += 1
        await asyncio.sleep(self._seconds)
        self.at_work -= 1
        if self._errors:
            raise self._errors.pop(0)
        self.stands.append(text)


async def test_only_the_latest_text_is_sent() -> None:
    """Shows that text added during an update is sent once, with its latest state."""
    sent: list[str] = []
    begun, free = asyncio.Event(), asyncio.Event()

    async def write(text: str) -> None:
        sent.append(text)
        begun.set()
        await free.wait()

    async with live_updates(write, 0) as listener:
        listener.show("0")
        await begun.wait()
        for number in range(1, 10):
            listener.show(str(number))
        free.set()
        while len(sent) < 2:
            await asyncio.sleep(0)
    assert sent == ["0", "9"]


async def test_updates_are_throttled() -> None:
    """Shows that the first text is sent at once, and the next one not before the interval."""
    place = Place()
    async with live_updates(place.write, 3600) as listener:
        for number in range(10):
            listener.show(str(number))
            while not place.stands:
                await asyncio.sleep(0)
    assert place.stands == ["0"]


async def test_no_update_is_in_flight_at_the_end() -> None:
    """An update in flight is awaited, so that it cannot overwrite the answer; the pause is not."""
    place = Place(seconds=0.2)
    started = time.perf_counter()
    async with live_updates(place.write, 60) as listener:
        listener.show("a")
        await asyncio.sleep(0.05)
        listener.show("b")
    assert (place.at_work, place.stands) == (0, ["a"])
    assert time.perf_counter() - started < 50


async def test_cancellation_also_waits_for_an_update_in_flight() -> None:
    """The next worker's text must not be overwritten either."""
    place = Place(seconds=0.2)

    async def work() -> None:
        async with live_updates(place.write, 60) as listener:
            listener.show("a")
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (place.at_work, place.stands) == (0, ["a"])


@pytest.mark.parametrize(
    "error",
    [
        DeliveryError("slow down", retry_after=30),
        LeaseLost("gone"),
        DatabaseUnavailable("gone"),
        ValueError("nobody foresaw it"),
    ],
)
async def test_the_first_failure_ends_updates_silently(error: Exception) -> None:
    """Shows that no error of an update, expected or not, reaches the answer, and that no more follow."""
    place = Place(error)
    async with live_updates(place.write, 0.01) as listener:
        for text in "abc":
            listener.show(text)
            await asyncio.sleep(0.05)
    assert place.stands == []


async def test_an_update_of_unknown_outcome_gets_time_to_appear() -> None:
    """The update may still arrive: the answer is written after it."""
    started = time.perf_counter()
    async with live_updates(Place(DeliveryUnclear("no reply")).write, 0.01) as listener:
        listener.show("a")
        await asyncio.sleep(0.05)
    assert time.perf_counter() - started >= UNCONFIRMED_SECONDS
