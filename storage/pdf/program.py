"""One kind's parent program, as long as anybody needs it: started, started again, and closed when idle."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from storage.pdf.owner import ForkServerClient, ForkServerEnded

_log = logging.getLogger(__name__)


class ForkServerPool:
    """Starts the parent program of a kind when it is first needed, and again whenever it has ended.

    Args:
        kind: a name of ``storage.pdf.parent.KINDS``.
        idle_seconds: how long it is kept without a job; None: until closed.
    """

    def __init__(self, kind: str, *, idle_seconds: float | None = None) -> None:
        self._kind = kind
        self._idle_seconds = idle_seconds
        self._starting = asyncio.Lock()
        self._parent: ForkServerClient | None = None
        self._jobs = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the parent program, None while there is none."""
        return self._parent.pid if self._parent else None

    @property
    def latest_peak(self) -> int:
        """Most bytes of memory that the child which ended last has held; 0 while there is no program."""
        return self._parent.latest_peak if self._parent else 0

    async def start(self) -> None:
        """Start it, unless it runs.

        Raises:
            EngineStartError: it cannot be started; the message says why.
        """
        await self._alive()

    async def run(self, job: dict[str, Any], source: int, passwords: int | None = None) -> bytes:
        """One job with open files; once more when the program ended for a reason that is not this file's.

        Raises:
            ReaderKilled: the child hit a limit or crashed.
            EngineStartError: the program cannot be started, or ended twice meanwhile.
        """
        self._jobs += 1
        try:
            try:
                return await (await self._alive()).run(job, source, passwords)
            except ForkServerEnded:
                _log.warning("the PDF process ended and is started again")
                os.lseek(source, 0, os.SEEK_SET)
                return await (await self._alive()).run(job, source, passwords)
        finally:
            self._jobs -= 1
            self._begin_rest()

    async def _alive(self) -> ForkServerClient:
        async with self._starting:
            if self._parent and self._parent.is_alive:
                return self._parent
            if self._parent:
                await self._parent.aclose()
            self._parent = await ForkServerClient.start(self._kind)
            _warn(self._parent.isolation)
            return self._parent

    def _begin_rest(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._idle_seconds is not None and not self._jobs:
            self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_rest)

    def _end_rest(self) -> None:
        if not self._jobs:
            self._closing = asyncio.create_task(self._close_if_idle())

    async def _close_if_idle(self) -> None:
        async with self._starting:
            if self._parent and not self._jobs:
                await self._parent.aclose()
                self._parent = None

    async def aclose(self) -> None:
        """End the program and every child."""
        if self._timer:
            self._timer.cancel()
        if self._closing:
            await self._closing
        async with self._starting:
            if self._parent:
                await self._parent.aclose()
            self._parent = None


def _warn(isolation: dict[str, str]) -> None:
    """Say what this machine does not let the PDF process give up."""
    if isolation["network"] == "open":
        _log.warning("the PDF process could not give up the network: no namespace and no filter allowed here")
    if isolation["files"] == "readable":
        _log.info("the PDF process can still read files: user namespaces are not allowed here")
