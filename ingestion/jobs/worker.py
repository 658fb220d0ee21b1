"""Worker: claims due steps from SQL, urgent lanes first, and runs each under a lease that it renews."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from storage.crash_points import reach
from storage.errors import InfrastructureError, LeaseLost, raised_at
from storage.sql.leased_queue import Lease
from storage.task_group import cancel_and_wait, keep_leased

DRAIN_SECONDS = 5.0
_log = logging.getLogger(__name__)


class Claimed(Protocol):
    """A claimed step."""

    @property
    def lease(self) -> Lease:
        """Lease on the step."""


C = TypeVar("C", bound=Claimed)

# Called with each finished step: lane name, claim, start by ``time.perf_counter``, and the error it ended
# with, if any.
OnStep = Callable[[str, Claimed, float, BaseException | None], None]


@dataclass(slots=True)
class Lane(Generic[C]):
    """A kind of step, with its concurrency and priority."""

    name: str
    claim: Callable[[], Awaitable[C | None]]
    run: Callable[[C], Awaitable[None]]
    fail: Callable[[C, Exception], Awaitable[None]]
    # Releases an unfinished step at shutdown.
    release: Callable[[C], Awaitable[None]]
    # Maximum concurrent steps.
    slots: int
    # Waits while a step of another lane runs or is due.
    is_background: bool
    running: set[asyncio.Task[None]] = field(default_factory=set)


class Worker(Generic[C]):
    """Claims and runs steps until it is stopped."""

    def __init__(
        self,
        lanes: Sequence[Lane[C]],
        idle: asyncio.Event,
        on_step: OnStep | None = None,
        *,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        """Run ``lanes``, the most urgent first; ``idle`` is set while only background steps run.

        ``on_step`` must return at once. At shutdown urgent steps get ``drain_seconds`` to finish.
        """
        self._lanes = lanes
        self._woken = asyncio.Event()
        self._idle = idle
        self._on_step = on_step
        self._drain_seconds = drain_seconds
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start; ``wake`` makes it look for work."""
        self._idle.set()
        self._loop = asyncio.create_task(self._run())
        self.wake()

    def wake(self) -> None:
        """Look for work soon: something was ingested, a step ended, or some time passed."""
        self._woken.set()

    async def stop(self) -> None:
        """Claim nothing more, let urgent steps finish within seconds, and release the others."""
        if self._loop is None:
            return
        await cancel_and_wait(self._loop)
        self._loop = None
        for task in self._tasks(is_background=True):
            task.cancel()
        if urgent := self._tasks(is_background=False):
            await asyncio.wait(urgent, timeout=self._drain_seconds)
        await cancel_and_wait(*(task for lane in self._lanes for task in lane.running))

    async def drain(self) -> int:
        """Run all due steps one by one, and return their number.

        For a worker that was not started.
        """
        self._idle.set()
        steps = 0
        while (due := await self._most_urgent()) is not None:
            await self._run_step(*due)
            steps += 1
        return steps

    async def _most_urgent(self) -> tuple[Lane[C], C] | None:
        for lane in self._lanes:
            if (claim := await lane.claim()) is not None:
                return lane, claim
        return None

    def _tasks(self, *, is_background: bool) -> list[asyncio.Task[None]]:
        return [t for lane in self._lanes if lane.is_background is is_background for t in lane.running]

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._fill()
            except InfrastructureError as error:
                _log.warning("claiming work failed: %s", error)
            except Exception as error:
                _log.error("claiming work failed: %s", raised_at(error))

    async def _fill(self) -> None:
        """Start steps while there are free slots; background ones only if nothing urgent runs."""
        for lane in self._lanes:
            if lane.is_background and self._tasks(is_background=False):
                return
            while len(lane.running) < lane.slots and (claim := await lane.claim()) is not None:
                self._start(lane, claim)

    def _start(self, lane: Lane[C], claim: C) -> None:
        task = asyncio.create_task(self._run_step(lane, claim))
        lane.running.add(task)
        self._update_idle()

        def end(done: asyncio.Task[None]) -> None:
            lane.running.discard(done)
            self._update_idle()
            self.wake()

        task.add_done_callback(end)

    def _update_idle(self) -> None:
        if self._tasks(is_background=False):
            self._idle.clear()
        else:
            self._idle.set()

    async def _run_step(self, lane: Lane[C], claim: C) -> None:
        """Run a step while renewing its lease; no error of it ends the worker."""
        began = time.perf_counter()
        failure: BaseException | None = None
        try:
            async with keep_leased(claim.lease.queue.seconds, claim.lease.renew):
                reach("after-claim")
                await lane.run(claim)
        except asyncio.CancelledError as error:
            failure = error
            await _record(lane.release(claim))
            raise
        except LeaseLost as error:  # another worker runs the step now
            failure = error
            _log.warning("step dropped: %s", error)
        except Exception as error:
            failure = error
            await _record(lane.fail(claim, error))
        finally:
            if self._on_step:
                self._on_step(lane.name, claim, began, failure)


async def _record(ending: Awaitable[None]) -> None:
    """Record how a step ended; if that fails, the lease expires and the step is retried."""
    try:
        await ending
    except (InfrastructureError, LeaseLost) as error:
        _log.warning("recording a step's outcome failed: %s", error)
