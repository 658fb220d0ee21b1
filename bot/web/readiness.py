"""Whether questions can be asked and answered right now, and which part is not ready when they cannot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from storage.errors import raised_at
from storage.task_group import cancel_and_wait

READY_SECONDS = 3.0
"""Seconds that a part may take to answer; a later one is not ready."""

Check = Callable[[], Awaitable[bool | None]]
"""Asks one part whether it works; raises or returns False when it does not."""

_log = logging.getLogger(__name__)


class Readiness:
    """The parts that answering needs, asked all at once.

    A part that is late is not asked a second time before it has answered the first.
    """

    def __init__(self, checks: Mapping[str, Check], seconds: float = READY_SECONDS) -> None:
        self._checks = checks
        self._seconds = seconds
        self._running: dict[str, asyncio.Task[bool]] = {}
        self._failing: list[str] = []

    async def not_ready(self) -> list[str]:
        """The names of the parts that do not work, or do not say so in time; empty when all is well."""
        for name, check in self._checks.items():
            if name not in self._running:
                self._running[name] = asyncio.create_task(_works(name, check), name=f"readiness-{name}")
        asked = {name: self._running[name] for name in self._checks}
        done, _ = await asyncio.wait(asked.values(), timeout=self._seconds)
        for name, task in asked.items():
            if task in done and self._running.get(name) is task:
                del self._running[name]
        failing = [name for name, task in asked.items() if task not in done or not task.result()]
        if failing != self._failing:
            _log.warning("not ready: %s", ", ".join(sorted(failing)) or "nothing any more")
        self._failing = failing
        return failing

    async def aclose(self) -> None:
        """End the checks that still run."""
        await cancel_and_wait(*self._running.values())


async def _works(name: str, check: Check) -> bool:
    try:
        return await check() is not False
    except Exception as error:  # whatever it is, this part does not work; its text may name a password
        _log.info("%s does not work: %s", name, raised_at(error))
        return False
