"""Runs blocking I/O in threads with an inactivity timeout."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from ingestion.errors import IngestionError

T = TypeVar("T")
# Call it on every progress; raises ``CallAbandoned`` after the caller gave up.
Heartbeat = Callable[[], None]

# Timeout of path lookups in the kernel; on a share that hangs they never return.
MOUNT_SECONDS = 2.0


def no_heartbeat() -> None:
    """Do nothing; for calls without a timeout."""


class ShareTimeout(IngestionError):
    """The location did not respond in time; the message is for an admin."""


class CallAbandoned(IngestionError):
    """The caller has given up on this call: end it."""


class Watchdog:
    """Runs one call to a location at a time, and waits for it as long as it makes progress.

    A call that hangs keeps its thread until the kernel or the SDK returns. Until then further calls fail, so
    that threads do not pile up. The threads are daemons, so they do not delay exit.
    """

    def __init__(self, seconds: float) -> None:
        """Time calls out ``seconds`` seconds after the last heartbeat."""
        self._seconds = seconds
        self._free = threading.Lock()

    def call(self, work: Callable[[Heartbeat], T]) -> T:
        """Run ``work`` and return its result, or raise its error; blocks.

        Raises:
            ShareTimeout: no heartbeat for too long; the work ends at its next heartbeat.
        """
        if not self._free.acquire(timeout=self._seconds):
            raise self._unanswered()
        call = _Call(work)
        threading.Thread(target=call.run, args=(self._free,), name="source", daemon=True).start()
        while not call.done.wait(max(0.0, self._seconds - call.idle_seconds())):
            if call.idle_seconds() >= self._seconds:
                call.is_abandoned = True
                raise self._unanswered()
        return call.result()

    def call_later(self, work: Callable[[Heartbeat], object]) -> None:
        """Run ``work`` after the running call has ended or timed out; returns at once."""

        def wait() -> None:
            with suppress(Exception):
                self.call(work)

        threading.Thread(target=wait, name="farewell", daemon=True).start()

    def _unanswered(self) -> ShareTimeout:
        return ShareTimeout(
            f"It did not answer for {self._seconds:g} s: is its server up, and the way to it? "
            "Nothing is deleted, and the next scan retries."
        )


class _Call(Generic[T]):
    """A call in its thread."""

    def __init__(self, work: Callable[[Heartbeat], T]) -> None:
        self.done = threading.Event()
        self.is_abandoned = False
        self._work = work
        self._moved = time.monotonic()
        self._result: T
        self._error: Exception | None = None

    def idle_seconds(self) -> float:
        """Return the seconds since the last heartbeat."""
        return time.monotonic() - self._moved

    def run(self, free: threading.Lock) -> None:
        """Run the work, then release the lock."""
        try:
            self._result = self._work(self._heartbeat)
        except Exception as error:  # raised again in the waiting thread
            self._error = error
        finally:
            free.release()
            self.done.set()

    def result(self) -> T:
        """Return the result of the work, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result

    def _heartbeat(self) -> None:
        if self.is_abandoned:
            raise CallAbandoned
        self._moved = time.monotonic()


def real_path(path: str) -> str:
    """Return a path with links resolved; unresolved if the kernel does not answer in time."""
    try:
        return Watchdog(MOUNT_SECONDS).call(lambda _heartbeat: os.path.realpath(path))
    except ShareTimeout:
        return os.path.abspath(path)
