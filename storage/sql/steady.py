"""An aiosqlite connection that several tasks use in turn: none of them can break it off in the middle."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

T = TypeVar("T")


class UncancelledConnection(aiosqlite.Connection):
    """Every statement runs to its end, even when its task is cancelled meanwhile.

    SQLAlchemy throws a connection away when a statement is broken off, and with it the work of all
    tasks that share its transaction.
    """

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_quick(fn, args):
            return fn(*args, **kwargs)
        return await run_to_completion(super()._execute(fn, *args, **kwargs))  # type: ignore[no-untyped-call]

    def _is_quick(self, fn: Any, args: Sequence[Any]) -> bool:
        """Whether it touches no disk, and so is not worth a way to the connection's thread and back.

        A plain BEGIN locks nothing yet; inside a transaction, savepoints are kept in memory.
        """
        name, is_open = getattr(fn, "__name__", ""), self._conn.in_transaction
        if name == "execute":
            return args[0] == "BEGIN" or (is_open and args[0].startswith(("SAVEPOINT ", "RELEASE ")))
        if name == "rollback":
            return not is_open
        return fn == self._conn.cursor or _is_closing_cursor(fn)


def _is_closing_cursor(fn: Any) -> bool:
    return isinstance(getattr(fn, "__self__", None), sqlite3.Cursor) and fn.__name__ == "close"


async def connect(file: Path, busy_seconds: float) -> aiosqlite.Connection:
    """A connection in driver-level autocommit: whoever uses it writes BEGIN."""
    opened = partial(
        sqlite3.connect, file, isolation_level=None, timeout=busy_seconds, check_same_thread=False
    )
    connection = UncancelledConnection(opened, iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy has it: a forgotten connection must not hold the exit up
    return await connection


async def run_to_completion(step: Coroutine[Any, Any, T]) -> T:
    """What a step returns; a cancellation that comes meanwhile is felt where the task waits next."""
    running = asyncio.ensure_future(step)
    is_cancelled = False
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            is_cancelled = True
    task = asyncio.current_task()
    if is_cancelled and task is not None:
        task.uncancel()  # asked for once more in the next line, and not twice: timeouts count requests
        task.cancel()
    return running.result()
