"""Rows that the database tests write, and helper processes."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE

from sqlalchemy import select

from storage.sql.database import Database
from storage.sql.tables import FactRow


async def keep(database: Database, name: str, value: str = "", *, exclusive: bool = True) -> None:
    """Write a row in its own transaction."""
    async with database.transaction(exclusive=exclusive) as session:
        session.add(FactRow(name=name, value=value))


async def names_in(database: Database) -> set[str]:
    """Return the names of all rows."""
    async with database.snapshot() as session:
        return set((await session.scalars(select(FactRow.name))).all())


async def start(program: str, *arguments: str) -> asyncio.subprocess.Process:
    """Start another Python process with warnings as errors."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program, *arguments), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


FORKING = """
import os, sys
import storage.queues.reading_queue, storage.sql.migrations.upgrade

program, count, *arguments = sys.argv[1:]
for number in range(int(count)):
    if os.fork() == 0:
        sys.argv = [sys.argv[0], *arguments, str(number)]
        exec(program, {"__name__": "__main__"})
        os._exit(0)
print(*[os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(int(count))], file=sys.stderr)
"""


async def run_at_once(count: int, program: str, *arguments: str) -> list[str]:
    """Run processes that start at the same moment; return their lines, each written by one ``os.write``.

    Each is a fork of a process with the imports done, with its number as last argument.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", FORKING, program, str(count), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    lines, errors = await process.communicate()
    assert errors.split() == [b"0"] * count, errors.decode()
    return lines.decode().splitlines()
