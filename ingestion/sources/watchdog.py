"""Calls to places that may hang: each runs in a thread that we stop waiting for when nothing moves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from ingestion.errors import IngestionError

T = TypeVar("T")
# To be called whenever something moved; raises ``CallAbandoned`` when nobody waits any more.
Heartbeat = Callable[[], None]

# How long the kernel may take to say where a path leads; on a share that hangs it never does.
MOUNT_SECONDS = 2.0


def no_heartbeat() -> None:
    """The heartbeat of calls that nobody watches."""


class ShareTimeout(IngestionError):
    """The place did not answer in time; the message is a sentence for an admin."""


class CallAbandoned(IngestionError):
    """Nobody waits for this call any more: end it."""


class Watchdog:
    """Lets one call at a time reach a place, and waits as long as something moves.

    A call that hangs keeps its thread until the kernel or the SDK lets go of it; until then further
    calls fail, so that threads do not pile up. The threads are daemons: they hold up no exit.
    """

    def __init__(self, seconds: float) -> None:
        """Wait for ``seconds`` after the last sign of life."""
        self._seconds = seconds
        self._free = threading.Lock()

    def call(self, work: Callable[[Heartbeat], T]) -> T:
        """Do ``work`` and return its result, or raise its error; blocks.

        Raises:
            ShareTimeout: nothing moved for so long; the work ends at its next heartbeat.
        """
        if not self._free.acquire(timeout=self._seconds):
            raise self._unanswered()
        call = _Call(work)
        threading.Thread(target=call.run, args=(self._free,), name="source", daemon=True).start()
        while not call.done.wait(max(0.0, self._seconds - call.idle_seconds())):
            if call.idle_seconds() >= self._seconds:
                call.is_given_up = True
                raise self._unanswered()
        return call.result()

    def call_later(self, work: Callable[[Heartbeat], object]) -> None:
        """Do ``work`` once the call before it has ended, or had its time; returns at once."""

        def wait() -> None:
            with suppress(Exception):
                self.call(work)

        threading.Thread(target=wait, name="farewell", daemon=True).start()

    def _unanswered(self) -> ShareTimeout:
        return ShareTimeout(
            f"It did not answer for {self._seconds:g} s: is its server up, and the way to it? "
            "Nothing is deleted meanwhile, and we ask again by ourselves."
        )


class _Call(Generic[T]):
    """One piece of work in its thread."""

    def __init__(self, work: Callable[[Heartbeat], T]) -> None:
        self.done = threading.Event()
        self.is_given_up = False
        self._work = work
        self._moved = time.monotonic()
        self._result: T
        self._error: Exception | None = None

    def idle_seconds(self) -> float:
        """Seconds since something moved."""
        return time.monotonic() - self._moved

    def run(self, free: threading.Lock) -> None:
        """Do the work, then let the next one in."""
        try:
            self._result = self._work(self._heartbeat)
        except Exception as error:  # handed to whoever waits
            self._error = error
        finally:
            free.release()
            self.done.set()

    def result(self) -> T:
        """What the work returned or raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def _heartbeat(self) -> None:
        if self.is_given_up:
            raise CallAbandoned
        self._moved = time.monotonic()


def real_path(path: str) -> str:
    """Where a path leads, links followed; as it is spelled when the kernel does not say so in time."""
    try:
        return Watchdog(MOUNT_SECONDS).call(lambda _heartbeat: os.path.realpath(path))
    except ShareTimeout:
        return os.path.abspath(path)
